# sinter_test_binary(name sources... [LABELS label...]): a GoogleTest program whose suites are one ctest entry each, those
# of SINTER_LONG_SUITES several. The suites are listed when ctest starts: an entry per case would start a process per case,
# one per program says little.
# The limit of an entry is ten times what it takes on a quiet machine, and no less than this.
set(SINTER_TEST_TIMEOUT 600)
set(SINTER_SLOW_TEST_TIMEOUT 14400)
if(SINTER_SANITIZE)
  set(SINTER_TEST_TIMEOUT 1800)
endif()
set(SINTER_TEST_ENVIRONMENT "SINTER_CACHE_DIR=${PROJECT_BINARY_DIR}/kernel_cache" "SINTER_STRICT=1")
if(SINTER_SANITIZE)
  list(APPEND SINTER_TEST_ENVIRONMENT "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/lsan_suppressions.txt"
    "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/tsan_suppressions.txt")
endif()

if(CMAKE_CROSSCOMPILING)
  # What the library starts as g++ must compile for the target.
  set(cross_bin "${PROJECT_BINARY_DIR}/cross_bin")
  file(CONFIGURE OUTPUT "${cross_bin}/g++" CONTENT "#!/bin/sh\nexec @CMAKE_CXX_COMPILER@ \"$@\"\n" @ONLY)
  file(CHMOD "${cross_bin}/g++" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
  list(APPEND SINTER_TEST_ENVIRONMENT "PATH=${cross_bin}:$ENV{PATH}")
endif()

# What a test source sees: sinter's headers, the generated ones, GoogleTest, the folders of the tree.
function(sinter_test_flags target)
  sinter_common_flags(${target})
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  sinter_pch_flags(${target})
  target_compile_definitions(${target} PRIVATE
    SINTER_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data" SINTER_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_include_directories(${target} PRIVATE "${SINTER_GENERATED_DIR}")
  target_link_libraries(${target} PRIVATE sinter_internals nlohmann_json::nlohmann_json GTest::gtest Threads::Threads)
endfunction()

function(sinter_test_binary name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LABELS")
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  sinter_test_flags(${name})
  target_link_libraries(${name} PRIVATE GTest::gtest_main)
  if(TARGET test_support)
    target_link_libraries(${name} PRIVATE test_support)
  endif()
  target_precompile_headers(${name} REUSE_FROM test_pch)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")

  set(timeout ${SINTER_TEST_TIMEOUT})
  if("slow" IN_LIST arg_LABELS)
    set(timeout ${SINTER_SLOW_TEST_TIMEOUT})
  endif()
  string(REGEX REPLACE "^test_" "" prefix "${name}")
  set(script "${PROJECT_BINARY_DIR}/tests/${name}_suites.cmake")
  file(GENERATE OUTPUT "${script}" CONTENT
"set(name \"${prefix}\")
set(binary \"$<TARGET_FILE:${name}>\")
set(emulator \"${CMAKE_CROSSCOMPILING_EMULATOR}\")
set(labels \"${arg_LABELS}\")
set(timeout \"${timeout}\")
set(long_suites \"${SINTER_LONG_SUITES}\")
set(environment \"${SINTER_TEST_ENVIRONMENT}\")
include(\"${PROJECT_SOURCE_DIR}/cmake/list_suites.cmake\")
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${script}")
endfunction()
