/* outcome.h - what a call did, as text to compare: exact values, or the error. Texts are the caller's to free. */
#ifndef PARAMS_OUTCOME_H
#define PARAMS_OUTCOME_H

#include <koine/koine.h>

char *show_error(void);                  /* takes the error away */
char *show_kind(kn_tensor *tensor);      /* shape, dtype, device, requires_grad, pinned */
char *show_tensor(kn_tensor *tensor);    /* and every element's bytes */
char *show_text(char *text);             /* frees it with kn_free */
char *show_module(kn_module *module);    /* printed, and its parameters and buffers; frees it */
char *show_optim(kn_optim *optim);       /* of some_parameters(): what three steps make of them; frees it */
char *show_loader(kn_loader *loader);    /* the batches of an epoch; frees it */
char *show_trainer(kn_trainer *trainer); /* the history of a fit of some_module() to some_data(); frees it */
char *show_profile(void);                /* names, counts and shapes of what the profiler saw */
bool is_error(const char *text);

/* Things to give to the calls, new at each call; one at a time, and what a call got before is freed. */
kn_parameter_list some_parameters(void);
kn_module *some_module(void);
kn_optim *some_optim(void); /* of some_module()'s parameters, which must have been asked for before */
kn_dataset *some_data(void);
void forget_outcomes(void); /* frees what is left */

#endif
