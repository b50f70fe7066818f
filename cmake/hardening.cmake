# Compiler and linker hardening (docs/robustness.md). It costs no measurable time: the hot loops run on the device.
# koine_hardening: for all of Koine's own code. Flags that the compiler does not support are omitted.
include(CheckCCompilerFlag)
add_library(koine_hardening INTERFACE)

foreach(flag IN ITEMS -fstack-protector-strong -fstack-clash-protection -fcf-protection=full
                      -mbranch-protection=standard)
  string(MAKE_C_IDENTIFIER "koine_has${flag}" known)
  set(CMAKE_REQUIRED_FLAGS "-Werror")
  check_c_compiler_flag(${flag} ${known})
  unset(CMAKE_REQUIRED_FLAGS)
  if(${known})
    target_compile_options(koine_hardening INTERFACE ${flag})
  endif()
endforeach()

# The C library's size checks need optimisation, and the sanitizers have better ones. Level 3 also checks sizes known
# only at run time (gcc 12, clang 15). Undefined first, because distributions' compilers define it.
if(NOT KOINE_SANITIZE)
  set(level 2)
  if((CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_C_COMPILER_VERSION VERSION_GREATER_EQUAL 12)
     OR (CMAKE_C_COMPILER_ID MATCHES "Clang" AND CMAKE_C_COMPILER_VERSION VERSION_GREATER_EQUAL 15))
    set(level 3)
  endif()
  target_compile_options(koine_hardening INTERFACE
                         "$<$<NOT:$<CONFIG:Debug,>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=${level}>")
endif()

# All symbols are resolved at program start, and their tables are read-only from then on.
target_link_options(koine_hardening INTERFACE LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack)
