#include "error.h"

#include <c10/util/Exception.h>

#include <string>

namespace koine
{

void raise_error()
{
    const kn_status status = kn_error_status();
    const std::string message = kn_error_message();
    kn_error_clear();
    if (status == KN_ERR_MEMORY)
        TORCH_CHECK_WITH(OutOfMemoryError, false, message);
    if (status == KN_ERR_ARGUMENT && message.find("out of range") != std::string::npos)
        TORCH_CHECK_INDEX(false, message);
    if (status == KN_ERR_DTYPE)
        raise_unsupported(message);
    TORCH_CHECK(false, message);
}

void raise_unsupported(const std::string &message) { throw Unsupported({__func__, __FILE__, __LINE__}, message); }

} // namespace koine
