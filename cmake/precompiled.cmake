# Half of a build is reading the same headers again. With DELTAFIN_PRECOMPILE they are read once for all
# optimised files and once for all others, the tests. A product file that forgets an #include may then
# compile: the gcc build proves that none does, with TESTS, which leaves the optimised files alone (g++ 12
# also warns of overruns in them that are none). A build without presets is made without: ccache keeps no
# file with precompiled headers unless it is told sloppiness = pch_defines,time_macros.
set(DELTAFIN_PRECOMPILE OFF CACHE STRING "for which files headers are precompiled: OFF, TESTS or ON")

if(DELTAFIN_PRECOMPILE)
  file(CONFIGURE OUTPUT empty.cc CONTENT "")
  set(precompiled_kinds unoptimised)
  if(NOT DELTAFIN_PRECOMPILE STREQUAL TESTS)
    list(APPEND precompiled_kinds optimised)
  endif()
  foreach(kind ${precompiled_kinds})
    add_library(precompiled_${kind} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/empty.cc)
    target_link_libraries(precompiled_${kind} PRIVATE fmt::fmt Threads::Threads GTest::gmock)
    target_precompile_headers(precompiled_${kind} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/precompiled.h)
  endforeach()
  target_precompile_headers(precompiled_unoptimised PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
  target_compile_options(precompiled_unoptimised PRIVATE -O0)
  if(TARGET precompiled_optimised)
    target_compile_options(precompiled_optimised PRIVATE ${DELTAFIN_COVERAGE})
  endif()
endif()

# precompiled_headers(TARGET optimised|unoptimised)
function(precompiled_headers target kind)
  if(TARGET precompiled_${kind})
    target_precompile_headers(${target} REUSE_FROM precompiled_${kind})
  endif()
endfunction()

# The other half is making the same templates of them again. With DELTAFIN_JOIN the files of a test
# program and of a COLD room, and in sanitized builds those of most rooms, are compiled some at a time, as one, so that names in
# their unnamed namespaces must differ. Not in the dev preset: who changes one of them would wait for all.
option(DELTAFIN_JOIN "compile files together" OFF)

# joined_files(TARGET COUNT)
function(joined_files target count)
  if(DELTAFIN_JOIN)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${count})
  endif()
endfunction()
