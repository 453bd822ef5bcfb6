# lib/sinter/libsinter_onednn.so: oneDNN as a candidate of the autotuner, loaded when tuning first asks for it.
# Without it the library's own kernels are the only candidates.
find_path(SINTER_DNNL_INCLUDE_DIR dnnl.hpp)
find_library(SINTER_DNNL_LIBRARY dnnl)
find_package(OpenMP QUIET COMPONENTS CXX)

set(dnnl_major "")
if(SINTER_DNNL_INCLUDE_DIR AND EXISTS "${SINTER_DNNL_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h")
  file(STRINGS "${SINTER_DNNL_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h" line REGEX "define DNNL_VERSION_MAJOR")
  string(REGEX MATCH "[0-9]+" dnnl_major "${line}")
endif()

if(NOT (SINTER_DNNL_INCLUDE_DIR AND SINTER_DNNL_LIBRARY AND OpenMP_CXX_FOUND))
  message(STATUS "oneDNN development files not found: no oneDNN plugin, max-autotune knows the library's own kernels only")
elseif(NOT dnnl_major EQUAL 2)
  message(STATUS "oneDNN ${dnnl_major} found, the plugin is written for oneDNN 2: not built")
elseif(onednn_plugin_sources)
  message(STATUS "oneDNN plugin: ${SINTER_DNNL_LIBRARY}")
  add_library(sinter_onednn MODULE ${onednn_plugin_sources})
  sinter_common_flags(sinter_onednn)
  add_dependencies(sinter_onednn tensor_methods)
  target_include_directories(sinter_onednn PRIVATE "${PROJECT_SOURCE_DIR}" "${METHODS_INCLUDE}")
  target_include_directories(sinter_onednn SYSTEM PRIVATE "${SINTER_DNNL_INCLUDE_DIR}")
  # The OpenMP that oneDNN brings, to hold it to one thread; nothing is compiled with it.
  target_link_libraries(sinter_onednn PRIVATE "${SINTER_DNNL_LIBRARY}" ${OpenMP_CXX_LIBRARIES})
  set_target_properties(sinter_onednn PROPERTIES
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib/sinter")
  install(TARGETS sinter_onednn LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/sinter")
endif()
