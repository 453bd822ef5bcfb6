# Linux on AArch64, by Debian's cross compiler (g++-aarch64-linux-gnu); programs run under qemu-user. Libraries of the
# target are taken from the compiler's own tree only: header-only ones and GoogleTest come from their sources, by the
# find modules in aarch64/.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(SINTER_CROSS_ROOT /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH "${SINTER_CROSS_ROOT}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
list(APPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}/aarch64")

find_program(SINTER_QEMU NAMES qemu-aarch64 qemu-aarch64-static)
if(SINTER_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR "${SINTER_QEMU};-L;${SINTER_CROSS_ROOT}")
endif()

# sinter_host_headers(variable folder): a folder that holds nothing but the host's header folder of that name, since all
# of the host's include folder would hide the target's C library.
function(sinter_host_headers variable folder)
  find_path(SINTER_HOST_${folder} ${folder} PATHS /usr/include /usr/local/include
    NO_CMAKE_FIND_ROOT_PATH NO_DEFAULT_PATH)
  if(SINTER_HOST_${folder})
    set(staged "${CMAKE_BINARY_DIR}/host_headers/${folder}")
    file(MAKE_DIRECTORY "${staged}")
    file(CREATE_LINK "${SINTER_HOST_${folder}}/${folder}" "${staged}/${folder}" SYMBOLIC)
    set(${variable} "${staged}" PARENT_SCOPE)
  else()
    set(${variable} "" PARENT_SCOPE)
  endif()
endfunction()

# The command's parser of arguments is looked for as a path.
if(NOT SINTER_CLI11_INCLUDE_DIR)
  sinter_host_headers(cli11 CLI)
  if(cli11)
    set(SINTER_CLI11_INCLUDE_DIR "${cli11}" CACHE PATH "")
  endif()
endif()
