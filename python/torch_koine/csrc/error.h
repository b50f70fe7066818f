// error.h - Koine's errors as PyTorch's exceptions.
#pragma once

#include <koine/status.h>

#include <c10/macros/Macros.h>

#include <string>

namespace koine
{

// Raises the calling thread's last error with its sentence: IndexError for an index out of range, OutOfMemoryError for
// exhausted memory, else RuntimeError.
[[noreturn]] void raise_error();

inline void check(kn_status status)
{
    if (C10_UNLIKELY(status != KN_OK))
        raise_error();
}

template <class Object> Object *check(Object *object)
{
    if (C10_UNLIKELY(object == nullptr))
        raise_error();
    return object;
}

// Takes a text that a Koine function allocated.
inline std::string taken(char *owned)
{
    std::string text = check(owned);
    kn_free(owned);
    return text;
}

} // namespace koine
