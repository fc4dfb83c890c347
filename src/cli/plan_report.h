// What deltafin plan has found out, for people and for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "memory/budget.h"
#include "memory/forecast.h"
#include "memory/model_sizes.h"
#include "memory/plan.h"

namespace deltafin::cli {

// A rate, and who says so: "given", "measured, direct reads". Nobody where it is empty.
struct KnownRate {
  std::optional<double> per_second = std::nullopt;
  std::string source = "";
};

struct PlanReport {
  std::string place, architecture;
  memory::ModelSizes sizes;
  memory::PlanRequest request;
  memory::Budget budget;
  memory::Plan plan;
  KnownRate disk, memory, arithmetic;
  memory::DecodeForecast decode;
  std::vector<memory::PrefillForecast> prefills;
  std::vector<std::string> notes;  // what could not be found out, and what would help

  memory::MachineRates rates() const {
    return {.disk_bytes = disk.per_second,
            .ram_bytes = memory.per_second,
            .operations = arithmetic.per_second};
  }
};

std::string to_text(const PlanReport& report);
// Schema "deltafin.plan.v1".
nlohmann::ordered_json to_json(const PlanReport& report);

// The parts of a plan, as plan and run print them.
nlohmann::ordered_json to_json(const memory::Plan& plan);

}  // namespace deltafin::cli
