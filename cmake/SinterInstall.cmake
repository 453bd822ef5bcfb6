# The library with its headers, found by find_package(sinter), which gives the target sinter::sinter, and by pkg-config; and the
# documents.
include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/sinter")

install(TARGETS sinter sinter_torch EXPORT sinterTargets
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

install(DIRECTORY "${LIBTORCH_INCLUDE}/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/sinter/libtorch")

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/sinterConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/sinterConfig.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/sinterConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/sinterConfig.cmake" "${PROJECT_BINARY_DIR}/sinterConfigVersion.cmake"
  DESTINATION "${package_dir}")

# Relative to the file itself, so that the installation may be moved.
file(RELATIVE_PATH up_to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" up_to_prefix "${up_to_prefix}")
set(private_libs "-pthread")
if(CMAKE_DL_LIBS)
  string(APPEND private_libs " -l${CMAKE_DL_LIBS}")
endif()
configure_file("${PROJECT_SOURCE_DIR}/cmake/sinter.pc.in" "${PROJECT_BINARY_DIR}/sinter.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/sinter.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

install(FILES "${PROJECT_SOURCE_DIR}/README.md" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}" RENAME copyright)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/examples" DESTINATION "${CMAKE_INSTALL_DOCDIR}" FILES_MATCHING PATTERN "*.cpp")
