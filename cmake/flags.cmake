# Compiler flags for every target. The bits of the product must not follow flags: no fast-math, no
# -march=native, and contraction off, so a multiply and an add fuse only where we write fma
# (g++ fuses by default even in strict C++20 mode).
set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_FLAGS_DEV "-O1 -g1 -DDELTAFIN_DCHECK=1")
# Kernels are compiled with -O3 in every build (below); nothing else is hot.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1")

set(DELTAFIN_SANITIZE "" CACHE STRING "comma separated sanitizers, empty for none")
option(DELTAFIN_FUZZ "build the libFuzzer targets, too (clang only)" OFF)

# Another compiler may warn of more, and so may a mutant: OFF for them.
set(CMAKE_COMPILE_WARNING_AS_ERROR ON CACHE BOOL "whether a warning is an error")
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -ffp-contract=off -fno-math-errno)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_link_options(-fuse-ld=lld-19)
endif()
if(DELTAFIN_SANITIZE)
  add_compile_options(-fsanitize=${DELTAFIN_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${DELTAFIN_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # Checks between the operations keep kernel loops from being unrolled or vectorised.
    add_compile_options(-Wno-pass-failed)
  endif()
endif()

# What a fuzzer follows: rooms that are no COLD ones. In kernels it would only slow down tests.
if(DELTAFIN_FUZZ)
  set(DELTAFIN_COVERAGE -fsanitize=fuzzer-no-link)
  set(DELTAFIN_NO_COVERAGE -fno-sanitize=fuzzer-no-link)
endif()

# Kernel files are optimised in every build (a checked build would take minutes over its tests), and each
# is compiled for exactly the instruction set it is named after.
# Their every access has a pointer that UBSan would follow, for half of their compile time. AddressSanitizer
# notices where such a pointer goes.
if(DELTAFIN_SANITIZE MATCHES "undefined")
  set(DELTAFIN_NO_POINTER_CHECKS -fno-sanitize=pointer-overflow)
endif()
set(DELTAFIN_AVX2_FLAGS ${DELTAFIN_NO_COVERAGE} ${DELTAFIN_NO_POINTER_CHECKS} -O3 -mavx2 -mfma -mbmi -mbmi2)
set(DELTAFIN_AVX512_FLAGS ${DELTAFIN_AVX2_FLAGS} -mavx512f -mavx512bw -mavx512dq -mavx512vl
                          -mprefer-vector-width=512)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # The header of its own intrinsics reads a variable to say that its value does not matter.
  list(APPEND DELTAFIN_AVX512_FLAGS -Wno-uninitialized -Wno-maybe-uninitialized)
endif()
function(deltafin_kernel_flags)
  set(numerics ${CMAKE_SOURCE_DIR}/src/numerics)
  set_source_files_properties(${numerics}/kernels_baseline.cc ${numerics}/kernels_neon.cc PROPERTIES
    COMPILE_OPTIONS "${DELTAFIN_NO_COVERAGE};-O3" SKIP_PRECOMPILE_HEADERS ON)
  # This test compares every float with a reference in double: hours without an optimiser.
  set_source_files_properties(${numerics}/elementary_test.cc PROPERTIES COMPILE_OPTIONS "-O2"
    SKIP_PRECOMPILE_HEADERS ON)
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    return()
  endif()
  set_source_files_properties(${numerics}/kernels_avx2.cc PROPERTIES
    COMPILE_OPTIONS "${DELTAFIN_AVX2_FLAGS}" SKIP_PRECOMPILE_HEADERS ON)
  set_source_files_properties(${numerics}/kernels_avx512.cc PROPERTIES
    COMPILE_OPTIONS "${DELTAFIN_AVX512_FLAGS}" SKIP_PRECOMPILE_HEADERS ON)
endfunction()
