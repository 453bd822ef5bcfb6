# sinter_embed(target file.embed ...): each text becomes a constant of the target,
#   namespace sinter::embedded { extern const char <stem>[]; extern const std::size_t <stem>_size; }
# closed by a zero that <stem>_size does not count. All are declared in the generated header sinter_embedded.h.
function(sinter_embed target)
  set(declarations "")
  set(symbols "")
  foreach(file IN LISTS ARGN)
    get_filename_component(stem "${file}" NAME_WLE)
    string(MAKE_C_IDENTIFIER "${stem}" symbol)
    if(symbol IN_LIST symbols)
      message(FATAL_ERROR "two embedded files are named ${stem}; the second is ${file}")
    endif()
    list(APPEND symbols ${symbol})
    string(APPEND declarations "extern const char ${symbol}[];\nextern const std::size_t ${symbol}_size;\n")
    set(generated "${SINTER_GENERATED_DIR}/embedded_${symbol}.cpp")
    add_custom_command(OUTPUT "${generated}"
      COMMAND "${CMAKE_COMMAND}" -D "INPUT=${file}" -D "OUTPUT=${generated}" -D "SYMBOL=${symbol}"
              -P "${PROJECT_SOURCE_DIR}/cmake/embed_file.cmake"
      DEPENDS "${file}" "${PROJECT_SOURCE_DIR}/cmake/embed_file.cmake"
      COMMENT "Embedding ${stem}" VERBATIM)
    target_sources(${target} PRIVATE "${generated}")
  endforeach()
  file(CONFIGURE OUTPUT "${SINTER_GENERATED_DIR}/sinter_embedded.h" CONTENT
"#pragma once
// Generated: texts built into the library.
#include <cstddef>

namespace sinter::embedded {
${declarations}}  // namespace sinter::embedded
" @ONLY)
endfunction()
