/* base/pause.h - a moment of a loop that waits for another thread: leaves the core's resources to its other thread. */
#pragma once

static inline void kn_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause(); /* 40 to 140 cycles */
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}
