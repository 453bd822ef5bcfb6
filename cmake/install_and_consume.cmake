# Installs BUILD_DIR into BUILD_DIR/prefix, builds the projects EXAMPLES/external and EXAMPLES/libtorch against that alone, and runs
# them and the command.
set(prefix "${BUILD_DIR}/prefix")
file(REMOVE_RECURSE "${prefix}" "${BUILD_DIR}/external" "${BUILD_DIR}/libtorch")

function(step)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "failed: ${ARGV}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

step("${CMAKE_COMMAND}" --install "${BUILD_DIR}" --prefix "${prefix}")
foreach(project external/hello_sinter libtorch/hello_torch)
  get_filename_component(folder "${project}" DIRECTORY)
  set(consumer "${BUILD_DIR}/${folder}")
  step("${CMAKE_COMMAND}" -S "${EXAMPLES}/${folder}" -B "${consumer}" -G "${GENERATOR}" "-DCMAKE_PREFIX_PATH=${prefix}"
    "-DCMAKE_CXX_COMPILER=${CXX}" -DCMAKE_BUILD_TYPE=Release)
  step("${CMAKE_COMMAND}" --build "${consumer}")
  step("${CMAKE_COMMAND}" -E chdir "${consumer}" "${BUILD_DIR}/${project}")
  message("${output}")
endforeach()
if(EXISTS "${prefix}/bin/sinter")
  step("${prefix}/bin/sinter" --help)
  step("${prefix}/bin/sinter" generate --prompt "Call me Ishmael." --max-new-tokens 4)
endif()
message("external project: ok")
