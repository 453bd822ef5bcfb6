# Builds SOURCE_DIR by the preset aarch64 and runs the tests of what differs on that machine. JOBS in the environment
# limits the parallel compilations.
foreach(program aarch64-linux-gnu-g++ qemu-aarch64)
  string(MAKE_C_IDENTIFIER "${program}" found)
  find_program(${found} NAMES ${program} ${program}-static)
  if(NOT ${found})
    message("neon: skipped, ${program} not found (Debian: g++-aarch64-linux-gnu, qemu-user)")
    return()
  endif()
endforeach()

function(step)
  execute_process(COMMAND ${ARGV} WORKING_DIRECTORY "${SOURCE_DIR}" RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "failed: ${ARGV}")
  endif()
endfunction()

set(jobs 2)
if(DEFINED ENV{JOBS})
  set(jobs "$ENV{JOBS}")
endif()
step("${CMAKE_COMMAND}" --preset aarch64)
step("${CMAKE_COMMAND}" --build build/aarch64 -j ${jobs} --target test_codegen test_runtime)
# Kernels of GPUs are the same on any host.
step("${CMAKE_CTEST_COMMAND}" --test-dir build/aarch64 --output-on-failure --no-tests=error --timeout 1800
  -R "^(codegen\\.|runtime\\.(.*Gemm|AttentionKernels|ElfLoader))" -E "OnHost|HipDialect")
