# Half of a build is reading the same headers again. With DELTAFIN_PRECOMPILE (clang only: with it g++ 12
# warns of overruns that are none) they are read once for all optimised files and once for all others.
# A file that forgets an #include may then compile; the gcc build, which proves that none does, is made
# without. So is a build without presets: ccache keeps no file with precompiled headers unless it is told
# sloppiness = pch_defines,time_macros.
option(DELTAFIN_PRECOMPILE "precompile the headers that most files read" OFF)

set(precompiled_headers <algorithm> <filesystem> <functional> <map> <optional> <span> <string> <string_view>
    <vector> <fmt/format.h> <nlohmann/json.hpp>)
if(DELTAFIN_PRECOMPILE)
  file(CONFIGURE OUTPUT empty.cc CONTENT "")
  foreach(kind optimised unoptimised)
    add_library(precompiled_${kind} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/empty.cc)
    target_link_libraries(precompiled_${kind} PRIVATE fmt::fmt Threads::Threads GTest::gmock)
  endforeach()
  target_precompile_headers(precompiled_optimised PRIVATE ${precompiled_headers})
  target_precompile_headers(precompiled_unoptimised PRIVATE ${precompiled_headers}
                            <gmock/gmock.h> <gtest/gtest.h>)
  target_compile_options(precompiled_optimised PRIVATE ${DELTAFIN_COVERAGE})
  target_compile_options(precompiled_unoptimised PRIVATE -O0)
endif()

# precompiled_headers(TARGET optimised|unoptimised)
function(precompiled_headers target kind)
  if(DELTAFIN_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM precompiled_${kind})
  endif()
endfunction()
