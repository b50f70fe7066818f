// json.hpp - PyTorch's headers of torch.func include nlohmann's library, which PyTorch does not ship. What they name of
// it in functions that are not called here.
#pragma once

#include <string>

namespace nlohmann
{

struct json {
    json() = default;
    template <class Value> explicit json(const Value &value);
    static json parse(const std::string &text);
    std::string dump() const;
    template <class Value> Value get() const;
};

} // namespace nlohmann
