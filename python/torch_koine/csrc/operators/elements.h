// elements.h - elementwise code of this backend's own, for what Koine has only inside its backward passes. One launch.
#pragma once

#include "compute.h"

#include <koine/jit.h>

#include <initializer_list>

namespace koine
{

// OpenCL C of koine/jit.h:
//
//     static const Elements slope("T slope(T g, T x, T p) { return x > 0 ? g : g * p; }", {"p"});
//
// The scalars' names, in the order of their values in a call. Results have the order of the inputs' dimensions
// (order.h).
class Elements
{
  public:
    explicit Elements(const char *code, std::initializer_list<const char *> scalars = {});

    at::Tensor operator()(Tensors &&inputs, std::initializer_list<double> scalars = {}) const;
    // All results.
    c10::SmallVector<at::Tensor, 4> all(Tensors &&inputs, std::initializer_list<double> scalars = {}) const;

  private:
    kn_jit *jit;
    c10::SmallVector<const char *, 4> names;
};

} // namespace koine
