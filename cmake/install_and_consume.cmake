# Installs BUILD_DIR into BUILD_DIR/prefix, builds the project EXTERNAL against that alone, and runs it and the command.
set(prefix "${BUILD_DIR}/prefix")
set(consumer "${BUILD_DIR}/external")
file(REMOVE_RECURSE "${prefix}" "${consumer}")

function(step)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "failed: ${ARGV}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

step("${CMAKE_COMMAND}" --install "${BUILD_DIR}" --prefix "${prefix}")
step("${CMAKE_COMMAND}" -S "${EXTERNAL}" -B "${consumer}" -G "${GENERATOR}" "-DCMAKE_PREFIX_PATH=${prefix}"
  "-DCMAKE_CXX_COMPILER=${CXX}" -DCMAKE_BUILD_TYPE=Release)
step("${CMAKE_COMMAND}" --build "${consumer}")
step("${consumer}/hello_sinter")
message("${output}")
if(EXISTS "${prefix}/bin/sinter")
  step("${prefix}/bin/sinter" --help)
  step("${prefix}/bin/sinter" generate --prompt "Call me Ishmael." --max-new-tokens 4)
endif()
message("external project: ok")
