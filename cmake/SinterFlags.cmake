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
  # Precompiled headers, which ccache only accepts when told to be lenient about them.
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
    # g++ 12 splits off cold parts of size zero; lld 14 lists their unwind entries at the address of the next function, and
    # an exception through that one aborts.
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_compile_options(${target} PRIVATE -fno-reorder-blocks-and-partition)
    endif()
  endif()
  if(SINTER_SANITIZE)
    target_compile_options(${target} PRIVATE
      -fsanitize=${SINTER_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${SINTER_SANITIZE})
  endif()
endfunction()

# Lets ccache see through the precompiled header that a target uses.
function(sinter_pch_flags target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -fpch-preprocess)
  endif()
endfunction()

# *_avx2.cpp, *_avx512.cpp and the extensions of the latter (*_avx512_bf16.cpp, *_avx512_vnni.cpp, *_avx512_amx.cpp) of
# the named list get their instruction sets; off x86-64 they leave the list. *_neon.cpp is for AArch64 alone, which
# has it in its base. A compiler that does not know an extension compiles its file without it.
function(sinter_instruction_set_flags list_name)
  set(sources ${${list_name}})
  if(SINTER_X86_64)
    set(foreign neon)
    include(CheckCXXCompilerFlag)
    # g++ 12 warns of uninitialized values inside its own intrinsics headers.
    set(common -O3 -Wno-psabi -Wno-uninitialized -Wno-maybe-uninitialized -mfma -mf16c)
    set(flags_avx2 -mavx2)
    set(flags_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl)
    set(flags_avx512_bf16 ${flags_avx512} -mavx512bf16)
    set(flags_avx512_vnni ${flags_avx512} -mavx512vnni)
    set(flags_avx512_amx ${flags_avx512} -mamx-tile -mamx-bf16)
    foreach(set avx2 avx512 avx512_bf16 avx512_vnni avx512_amx)
      set(matching ${sources})
      list(FILTER matching INCLUDE REGEX "_${set}\\.cpp$")
      string(REPLACE ";" " " together "${flags_${set}}")
      check_cxx_compiler_flag("${together}" SINTER_CXX_HAS_${set})
      if(SINTER_CXX_HAS_${set})
        set_source_files_properties(${matching} PROPERTIES
          COMPILE_OPTIONS "${common};${flags_${set}}" SKIP_PRECOMPILE_HEADERS ON)
      endif()
    endforeach()
  else()
    set(foreign avx2|avx512|avx512_bf16|avx512_vnni|avx512_amx)
    set(matching ${sources})
    list(FILTER matching INCLUDE REGEX "_neon\\.cpp$")
    set_source_files_properties(${matching} PROPERTIES COMPILE_OPTIONS "-O3;-Wno-psabi" SKIP_PRECOMPILE_HEADERS ON)
  endif()
  list(FILTER sources EXCLUDE REGEX "_(${foreign})\\.cpp$")
  set(${list_name} ${sources} PARENT_SCOPE)
endfunction()
