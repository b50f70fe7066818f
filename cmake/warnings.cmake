# koine_flags: warnings, hardening, sanitizers and definitions for all of Koine's own code.
add_library(koine_flags INTERFACE)
target_link_libraries(koine_flags INTERFACE koine_hardening)
target_compile_definitions(koine_flags INTERFACE _POSIX_C_SOURCE=200809L _DEFAULT_SOURCE)
target_compile_options(koine_flags INTERFACE -Wall -Wextra -Wshadow -Wpointer-arith -Wwrite-strings -Wvla -Wundef
                                             $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes -Wmissing-prototypes>)
if(KOINE_WERROR)
  # These two depend on flow analysis that differs between versions of gcc: shown, but not errors.
  target_compile_options(koine_flags INTERFACE -Werror $<$<C_COMPILER_ID:GNU>:-Wno-error=maybe-uninitialized
                                               -Wno-error=format-truncation>)
endif()

if(KOINE_SANITIZE)
  # UBSan stops at its first finding instead of continuing, so that tests cannot miss one.
  target_compile_options(koine_flags INTERFACE -fsanitize=${KOINE_SANITIZE} -fno-sanitize-recover=undefined
                                               -fno-omit-frame-pointer -g)
  target_link_options(koine_flags INTERFACE -fsanitize=${KOINE_SANITIZE})
endif()
