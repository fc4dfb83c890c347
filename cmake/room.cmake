# deltafin_room(NAME [COLD] [APART] [ROOMS room...] [LIBRARIES lib...])
#
# src/NAME/*.cc becomes the static library NAME; src/NAME/*_test.cc the test program NAME_test.
# ROOMS is who NAME may include. Headers are found as "room/file.h". COLD: no test waits for this room,
# but its templates take an optimiser long, so checked builds do without. APART: its files use the same names
# for different things, so they are never compiled together.
function(deltafin_room name)
  cmake_parse_arguments(ARG "COLD;APART" "" "ROOMS;LIBRARIES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cc
       ${CMAKE_SOURCE_DIR}/src/${name}/*/*.cc)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "(_test|/main)\\.cc$")
  set_property(GLOBAL APPEND PROPERTY DELTAFIN_ROOM_TABLE "${name}:${ARG_ROOMS}")

  add_library(${name} STATIC ${sources})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(${name} PUBLIC ${ARG_ROOMS} ${ARG_LIBRARIES})
  if(ARG_COLD AND CMAKE_BUILD_TYPE STREQUAL Dev)
    target_compile_options(${name} PRIVATE -O0)
    if(TARGET precompiled_optimised)  # g++ refuses those of tests for what does not link GoogleTest
      precompiled_headers(${name} unoptimised)
    endif()
  else()
    target_compile_options(${name} PRIVATE ${DELTAFIN_COVERAGE})
    precompiled_headers(${name} optimised)
  endif()
  # Rooms that compute stay apart where no sanitizer looks: there a forgotten #include must show.
  if((DELTAFIN_SANITIZE OR ARG_COLD) AND NOT ARG_APART)
    joined_files(${name} 8)
  endif()
  if(tests)
    deltafin_test(${name}_test SOURCES ${tests} LIBRARIES ${name})
  endif()
endfunction()

# deltafin_test(NAME SOURCES file... [LIBRARIES lib...])
#
# One GoogleTest program. Tests whose suite name ends in "Full" carry the label full and run in
# `./x full`; those of "Soak" take minutes and gigabytes, carry the label soak and run in `./x test soak`,
# one at a time; all others carry the label quick and run in `./x test`.
function(deltafin_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} test_support GTest::gmock GTest::gtest_main)
  # What a test does itself is never worth optimising, and gmock doubles its compile time with -O2.
  target_compile_options(${name} PRIVATE -O0)
  target_compile_definitions(${name} PRIVATE DELTAFIN_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  precompiled_headers(${name} unoptimised)
  joined_files(${name} 16)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_FILTER "-*Full.*:*Soak.*"
                       PROPERTIES LABELS quick TIMEOUT 120)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_FILTER "*Full.*"
                       PROPERTIES LABELS full TIMEOUT 900)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_FILTER "*Soak.*"
                       PROPERTIES LABELS soak TIMEOUT 3600 RUN_SERIAL TRUE)
  # A sanitized process takes long to start. The quick tests once more, a quarter of a program a process.
  if(DELTAFIN_SANITIZE)
    foreach(shard RANGE 3)
      add_test(NAME Shard.${name}.${shard} COMMAND ${name} --gtest_filter=-*Full.*:*Soak.* --gtest_brief=1)
      set_tests_properties(Shard.${name}.${shard} PROPERTIES LABELS shard TIMEOUT 600
        ENVIRONMENT "GTEST_TOTAL_SHARDS=4;GTEST_SHARD_INDEX=${shard}")
    endforeach()
  endif()
endfunction()
