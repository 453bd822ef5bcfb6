# Compiler, linker and cache settings. Nothing here reaches a project that only links with sinter.

if(SINTER_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
  endif()
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g0 -DNDEBUG")
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  set(CMAKE_CXX_EXTENSIONS OFF)
endif()

find_program(SINTER_CCACHE ccache)
if(SINTER_TOP_LEVEL AND SINTER_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The tests use a precompiled header, which ccache only accepts when told to be lenient about it.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros "${SINTER_CCACHE}")
endif()

include(CheckCXXSourceCompiles)
set(CMAKE_REQUIRED_LINK_OPTIONS -fuse-ld=lld)
check_cxx_source_compiles("int main() { return 0; }" SINTER_HAVE_LLD)
unset(CMAKE_REQUIRED_LINK_OPTIONS)

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
  set(SINTER_X86_64 ON)
else()
  set(SINTER_X86_64 OFF)
endif()

# Language, warnings, linker and sanitizers of one of our own targets.
function(sinter_common_flags target)
  target_compile_features(${target} PRIVATE cxx_std_20)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Werror=return-type)
  if(SINTER_HAVE_LLD)
    target_link_options(${target} PRIVATE -fuse-ld=lld)
  endif()
  if(SINTER_SANITIZE)
    target_compile_options(${target} PRIVATE
      -fsanitize=${SINTER_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${SINTER_SANITIZE})
  endif()
endfunction()

# *_avx2.cpp and *_avx512.cpp of the named list get their instruction sets; off x86-64 they leave the list.
function(sinter_instruction_set_flags list_name)
  set(sources ${${list_name}})
  set(avx2 ${sources})
  set(avx512 ${sources})
  list(FILTER avx2 INCLUDE REGEX "_avx2\\.cpp$")
  list(FILTER avx512 INCLUDE REGEX "_avx512\\.cpp$")
  if(SINTER_X86_64)
    # g++ 12 warns of uninitialized values inside its own intrinsics headers.
    set(common -O3 -Wno-psabi -Wno-uninitialized -Wno-maybe-uninitialized -mfma -mf16c)
    set_source_files_properties(${avx2} PROPERTIES COMPILE_OPTIONS "${common};-mavx2")
    set_source_files_properties(${avx512} PROPERTIES COMPILE_OPTIONS
      "${common};-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl")
  else()
    list(FILTER sources EXCLUDE REGEX "_avx(2|512)\\.cpp$")
    set(${list_name} ${sources} PARENT_SCOPE)
  endif()
endfunction()
