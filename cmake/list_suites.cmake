# Read by ctest: one entry per suite of `binary`, which `emulator` runs where it is for another machine. An entry
# that fails stands for a program that is missing or will not list.
set(suites "")
if(EXISTS "${binary}")
  execute_process(COMMAND ${emulator} "${binary}" --gtest_list_tests OUTPUT_VARIABLE listing RESULT_VARIABLE status)
  if(status EQUAL 0)
    string(REGEX MATCHALL "[^\n]+" lines "${listing}")
    foreach(line IN LISTS lines)
      if(line MATCHES "^([A-Za-z0-9_/]+)\\.( *#.*)?$")
        list(APPEND suites "${CMAKE_MATCH_1}")
      endif()
    endforeach()
  endif()
endif()

if(NOT suites)
  add_test("${name}.not_built" "${binary}" --gtest_list_tests)
  set_tests_properties("${name}.not_built" PROPERTIES LABELS "${labels}")
endif()
foreach(suite IN LISTS suites)
  add_test("${name}.${suite}" ${emulator} "${binary}" "--gtest_filter=${suite}.*" --gtest_brief=1)
  set_tests_properties("${name}.${suite}" PROPERTIES
    LABELS "${labels}" TIMEOUT "${timeout}" ENVIRONMENT "${environment}")
endforeach()
