/* support/sanitized.h - SANITIZED: is the address or the thread sanitizer compiled in? Their allocators keep freed
 * memory, so the process's memory use is meaningless, and their locks do not survive a fork while other threads run. */
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED true
#endif
#endif
#ifndef SANITIZED
#define SANITIZED false
#endif
