#include <string>
#include <vector>

#include "cli/app.h"

int main(int argc, char** argv) {
  // A process may be started without even its own name.
  return deltafin::cli::run_app(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
}
