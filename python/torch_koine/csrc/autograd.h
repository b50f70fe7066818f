// autograd.h - PyTorch's threads for backward passes, at the end of the process.
#pragma once

namespace koine
{

// Waits until the threads that run backward passes hold no Python objects of passes that have ended. PyTorch's threads
// let go of a pass a moment after its caller goes on. Doing so while the interpreter ends would end the process:
// "terminate called without an active exception". The caller must not hold the interpreter's lock.
void finish_backward_passes();

} // namespace koine
