# lib/sinter/libsinter_clang.so: clang inside the process, loaded on the first kernel that no cache holds.
# Without it kernels are compiled by a compiler run as a child process.
set(llvm_root "/usr/lib/llvm-${SINTER_CLANG_VERSION}")
find_path(SINTER_CLANG_INCLUDE_DIR clang/Frontend/CompilerInstance.h HINTS "${llvm_root}/include" NO_DEFAULT_PATH)
find_path(SINTER_LLVM_INCLUDE_DIR llvm/ExecutionEngine/Orc/LLJIT.h HINTS "${llvm_root}/include" NO_DEFAULT_PATH)
find_library(SINTER_CLANG_CPP_LIBRARY clang-cpp HINTS "${llvm_root}/lib" NO_DEFAULT_PATH)
find_library(SINTER_LLVM_LIBRARY NAMES LLVM LLVM-${SINTER_CLANG_VERSION} HINTS "${llvm_root}/lib" NO_DEFAULT_PATH)

if(NOT (SINTER_CLANG_INCLUDE_DIR AND SINTER_LLVM_INCLUDE_DIR AND SINTER_CLANG_CPP_LIBRARY AND SINTER_LLVM_LIBRARY))
  message(STATUS "clang ${SINTER_CLANG_VERSION} development files not found: no clang plugin, "
                 "kernels will be compiled by g++ as a child process (slower first use)")
elseif(plugin_sources)
  message(STATUS "clang plugin: clang ${SINTER_CLANG_VERSION} from ${llvm_root}")
  add_library(sinter_clang MODULE ${plugin_sources})
  sinter_common_flags(sinter_clang)
  # LLVM's own classes carry no type information in many builds; neither may what derives from them.
  target_compile_options(sinter_clang PRIVATE -fno-rtti)
  if(SINTER_SANITIZE MATCHES "undefined")
    target_compile_options(sinter_clang PRIVATE -fno-sanitize=vptr)
  endif()
  add_dependencies(sinter_clang tensor_methods)
  target_include_directories(sinter_clang PRIVATE "${PROJECT_SOURCE_DIR}" "${METHODS_INCLUDE}" "${SINTER_GENERATED_DIR}")
  target_include_directories(sinter_clang SYSTEM PRIVATE "${SINTER_CLANG_INCLUDE_DIR}" "${SINTER_LLVM_INCLUDE_DIR}")
  target_compile_definitions(sinter_clang PRIVATE SINTER_CLANG_VERSION=${SINTER_CLANG_VERSION}
    SINTER_CLANG_RESOURCE_DIR="${llvm_root}/lib/clang/${SINTER_CLANG_VERSION}"
    __STDC_CONSTANT_MACROS __STDC_FORMAT_MACROS __STDC_LIMIT_MACROS)
  target_link_libraries(sinter_clang PRIVATE "${SINTER_CLANG_CPP_LIBRARY}" "${SINTER_LLVM_LIBRARY}")
  target_link_options(sinter_clang PRIVATE -Wl,--as-needed)
  set_target_properties(sinter_clang PROPERTIES
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib/sinter")
  install(TARGETS sinter_clang LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/sinter")
endif()
