// The program `deltafin`: which command is meant, and how it ends.
#pragma once

#include <string>
#include <vector>

namespace deltafin::cli {

// Runs what the arguments (without the program's name) ask for and returns the process's exit
// status: 0 done, 2 usage, 3 bad or incomplete model, 4 over budget, 5 I/O, 6 mismatch, 130
// interrupted. Every failure has been printed to standard error, once.
int run_app(const std::vector<std::string>& arguments);

}  // namespace deltafin::cli
