# koine_flags: the warnings, the hardening, the sanitizers and the definitions that all of Koine's own code is compiled with.
add_library(koine_flags INTERFACE)
target_link_libraries(koine_flags INTERFACE koine_hardening)
target_compile_definitions(koine_flags INTERFACE _POSIX_C_SOURCE=200809L _DEFAULT_SOURCE)
target_compile_options(koine_flags INTERFACE -Wall -Wextra -Wshadow -Wpointer-arith -Wwrite-strings -Wvla -Wundef
                                             $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes -Wmissing-prototypes>)
if(KOINE_WERROR)
  # These two come from guesses about the flow of control that differ between versions of gcc: shown, but no reason to refuse a build.
  target_compile_options(koine_flags INTERFACE -Werror $<$<C_COMPILER_ID:GNU>:-Wno-error=maybe-uninitialized -Wno-error=format-truncation>)
endif()

if(KOINE_SANITIZE)
  # UBSan stops at its first finding instead of printing and going on, so that a test cannot pass over one.
  target_compile_options(koine_flags INTERFACE -fsanitize=${KOINE_SANITIZE} -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g)
  target_link_options(koine_flags INTERFACE -fsanitize=${KOINE_SANITIZE})
endif()
