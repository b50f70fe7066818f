// error.h - Koine's errors as PyTorch's exceptions.
#pragma once

#include <koine/status.h>

#include <c10/macros/Macros.h>
#include <c10/util/Exception.h>

#include <string>

namespace koine
{

// An operator that Koine has, but not for these dtypes or arguments. Kernels that end with it before they have written
// anything run on the CPU: kernels.h. Elsewhere a RuntimeError.
class Unsupported : public c10::Error
{
    using c10::Error::Error;
};

// Raises the calling thread's last error with its sentence: IndexError for an index out of range, OutOfMemoryError for
// exhausted memory, Unsupported for a dtype, else RuntimeError.
[[noreturn]] void raise_error();
[[noreturn]] void raise_unsupported(const std::string &message);

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
