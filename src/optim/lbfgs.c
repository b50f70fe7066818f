#include "optim/optim.h"
void kn_lbfgs_free(kn_lbfgs *lbfgs) { (void)lbfgs; }
