# What the build makes of the public op headers, by programs of tools/ that it compiles and runs. Methods of Tensor: the target
# `tensor_methods`; gives METHODS_INCLUDE, the folder of sinter/tensor/tensor_methods.inc, and METHODS_SOURCE. LibTorch's other
# names of functions: sinter/ops/flat_names.inc and out_names.inc, by the same target. The table of functions for the command:
# FUNCTIONS_SOURCE.
add_library(op_headers STATIC EXCLUDE_FROM_ALL "${PROJECT_SOURCE_DIR}/tools/op_headers.cpp")
target_compile_features(op_headers PUBLIC cxx_std_20)
foreach(tool make_methods make_flat_names make_functions)
  add_executable(${tool} EXCLUDE_FROM_ALL "${PROJECT_SOURCE_DIR}/tools/${tool}.cpp")
  target_link_libraries(${tool} PRIVATE op_headers)
  set_target_properties(${tool} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${SINTER_GENERATED_DIR}")
endforeach()

set(METHODS_INCLUDE "${SINTER_GENERATED_DIR}/include")
set(METHODS_SOURCE "${SINTER_GENERATED_DIR}/tensor_methods.cpp")
set(FUNCTIONS_SOURCE "${SINTER_GENERATED_DIR}/public_functions.cpp")
set(methods_header "${METHODS_INCLUDE}/sinter/tensor/tensor_methods.inc")
file(STRINGS "${PROJECT_SOURCE_DIR}/sinter/public_headers.txt" op_headers REGEX "^sinter/ops/")
set(op_header_files ${op_headers})
list(TRANSFORM op_header_files PREPEND "${PROJECT_SOURCE_DIR}/")
add_custom_command(OUTPUT "${methods_header}" "${METHODS_SOURCE}"
  COMMAND make_methods "${methods_header}" "${METHODS_SOURCE}" ${op_headers}
  WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
  DEPENDS make_methods ${op_header_files}
  COMMENT "Writing the methods of Tensor" VERBATIM)
set(flat_names "${METHODS_INCLUDE}/sinter/ops/flat_names.inc")
set(out_names "${METHODS_INCLUDE}/sinter/ops/out_names.inc")
add_custom_command(OUTPUT "${flat_names}" "${out_names}"
  COMMAND ${CMAKE_COMMAND} -E make_directory "${METHODS_INCLUDE}/sinter/ops"
  COMMAND make_flat_names "${flat_names}" "${out_names}" ${op_headers}
  WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
  DEPENDS make_flat_names ${op_header_files}
  COMMENT "Writing LibTorch's other names of functions" VERBATIM)
add_custom_target(tensor_methods DEPENDS "${methods_header}" "${METHODS_SOURCE}" "${flat_names}" "${out_names}")
add_custom_command(OUTPUT "${FUNCTIONS_SOURCE}"
  COMMAND make_functions "${FUNCTIONS_SOURCE}" sinter/tensor/tensor.h ${op_headers}
  WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
  DEPENDS make_functions ${op_header_files} "${PROJECT_SOURCE_DIR}/sinter/tensor/tensor.h"
  COMMENT "Writing the table of functions" VERBATIM)
install(FILES "${methods_header}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/sinter/tensor")
install(FILES "${flat_names}" "${out_names}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/sinter/ops")
