# The CMake package: find_package(sinter) gives the target sinter::sinter.
include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/sinter")

install(TARGETS sinter EXPORT sinterTargets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(EXPORT sinterTargets NAMESPACE sinter:: DESTINATION "${package_dir}")

# The headers that programs may include, and no others.
set(header_list "${PROJECT_SOURCE_DIR}/sinter/public_headers.txt")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${header_list}")
file(STRINGS "${header_list}" headers REGEX "^sinter/")
foreach(header IN LISTS headers)
  get_filename_component(folder "${header}" DIRECTORY)
  install(FILES "${PROJECT_SOURCE_DIR}/${header}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/${folder}")
endforeach()

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/sinterConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/sinterConfig.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/sinterConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/sinterConfig.cmake" "${PROJECT_BINARY_DIR}/sinterConfigVersion.cmake"
  DESTINATION "${package_dir}")
