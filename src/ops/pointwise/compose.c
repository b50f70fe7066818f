/* ops/pointwise/compose.c - see compose.h. A recursive-descent parser that evaluates as it parses, one function per
 * level of precedence. */
#include "ops/pointwise/compose.h"

#include <ctype.h>
#include <koine/pointwise.h>
#include <koine/special.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/plain_numbers.h"
#include "base/text.h"
#include "ops/dispatch/invoke.h"
#include "ops/dispatch/operators.h"
#include "tensor/tensor.h"

typedef kn_composed value;

typedef struct parser {
    const char *text, *at, *letters;
    const value *operands;
    kn_dtype dtype; /* of numbers beside conditions */
    bool failed;
} parser;

static value ternary(parser *p);

/* --- values ------------------------------------------------------------------------------------------------------- */

static value fail(parser *p, const char *what)
{
    if (!p->failed)
        kn_fail(KN_ERR_INTERNAL, "%s in the derivative `%s`, at `%s`", what, p->text, p->at);
    p->failed = true;
    return (value){.number = 0};
}

static value of_tensor(parser *p, kn_tensor *tensor)
{
    p->failed |= !tensor;
    return (value){.tensor = tensor};
}

/* A number as an operand of a tensor: 0-dimensional and of its dtype, so that it does not affect promotion. */
static kn_tensor *beside(const parser *p, const value *v, const kn_tensor *other)
{
    const kn_dtype dtype = kn_dtype_is_floating(other->dtype) ? other->dtype : p->dtype;
    return v->tensor ? v->tensor
                     : kn_full_with(0, NULL, kn_scalar_real(v->number),
                                    &(kn_tensor_options){.dtype = dtype, .device = other->storage->device});
}

static double fold(char sign, double a, double b)
{
    switch (sign) {
    case '+':
        return a + b;
    case '-':
        return a - b;
    case '*':
        return a * b;
    case '/':
        return a / b;
    case '<':
        return a < b;
    case '>':
        return a > b;
    case 'l':
        return a <= b;
    case 'g':
        return a >= b;
    case '=':
        return a == b;
    case '!':
        return a != b;
    case '|':
        return a != 0 || b != 0;
    default:
        return a != 0 && b != 0;
    }
}

/* "or" and "and" combine conditions. */
static kn_tensor *combine(char sign, kn_tensor *a, kn_tensor *b)
{
    switch (sign) {
    case '+':
    case '|':
        return kn_add(a, b);
    case '-':
        return kn_sub(a, b);
    case '*':
    case '&':
        return kn_mul(a, b);
    case '/':
        return kn_div(a, b);
    case '<':
        return kn_lt(a, b);
    case '>':
        return kn_gt(a, b);
    case 'l':
        return kn_le(a, b);
    case 'g':
        return kn_ge(a, b);
    case '=':
        return kn_eq(a, b);
    default:
        return kn_ne(a, b);
    }
}

static value binary(parser *p, char sign, value a, value b)
{
    if (p->failed)
        return a;
    if (!a.tensor && !b.tensor)
        return (value){.number = fold(sign, a.number, b.number)};
    if ((sign == '&' || sign == '|') && !(a.tensor && b.tensor)) { /* a number decides, or says nothing */
        const value number = a.tensor ? b : a, other = a.tensor ? a : b;
        return (number.number != 0) == (sign == '&') ? other : number;
    }
    return of_tensor(
        p, combine(sign, beside(p, &a, b.tensor ? b.tensor : a.tensor), beside(p, &b, a.tensor ? a.tensor : b.tensor)));
}

static value choose(parser *p, value condition, value yes, value no)
{
    if (p->failed)
        return yes;
    if (!condition.tensor)
        return condition.number != 0 ? yes : no;
    const kn_tensor *like = yes.tensor ? yes.tensor : no.tensor ? no.tensor : condition.tensor;
    return of_tensor(p, kn_where(condition.tensor, beside(p, &yes, like), beside(p, &no, like)));
}

/* --- text --------------------------------------------------------------------------------------------------------- */

static bool accept(parser *p, const char *token)
{
    while (isspace((unsigned char)*p->at))
        p->at++;
    if (strncmp(p->at, token, strlen(token)) != 0)
        return false;
    p->at += strlen(token);
    return true;
}

static void expect(parser *p, const char *token)
{
    if (!accept(p, token))
        fail(p, "unexpected end or character");
}

/* --- functions ---------------------------------------------------------------------------------------------------- */

/* A function of two values, of which one is a tensor. */
static kn_tensor *power(const parser *p, const value *base, const value *exponent)
{
    (void)p;
    if (!exponent->tensor)
        return kn_pow_scalar(base->tensor, exponent->number);
    return base->tensor ? kn_pow(base->tensor, exponent->tensor) : kn_rpow_scalar(exponent->tensor, base->number);
}

static kn_tensor *floor_divide(const parser *p, const value *a, const value *b)
{
    return b->tensor ? kn_floor_divide(beside(p, a, b->tensor), b->tensor)
                     : kn_floor_divide_scalar(a->tensor, b->number);
}

static kn_tensor *div_trunc(const parser *p, const value *a, const value *b)
{
    const kn_tensor *like = b->tensor ? b->tensor : a->tensor;
    return kn_div_mode(beside(p, a, like), beside(p, b, like), KN_ROUNDING_TRUNC);
}

/* Of a gradient and a sigmoid. Its own gradient, 1 - 2 b times an infinite a, is no difference of infinities. */
static kn_tensor *sigmoid_backward(const parser *p, const value *a, const value *b)
{
    (void)p;
    return kn_invoke(&kn_sigmoid_backward_op, NULL, a->tensor, b->tensor);
}

static kn_tensor *polygamma(const parser *p, const value *n, const value *x)
{
    (void)p;
    return kn_polygamma((int)n->number, x->tensor);
}

static value function_of_two(parser *p, const char *name, const value *a, const value *b)
{
    static const struct {
        const char *name;
        kn_tensor *(*apply)(const parser *p, const value *a, const value *b);
    } functions[] = {{"pow", power},
                     {"kn_power_of", power},
                     {"kn_floor_divide", floor_divide},
                     {"kn_div_trunc", div_trunc},
                     {"kn_polygamma", polygamma},
                     {"kn_sigmoid_backward", sigmoid_backward}};
    if (p->failed)
        return *a;
    for (size_t i = 0; (a->tensor || b->tensor) && i < sizeof functions / sizeof functions[0]; i++)
        if (strcmp(functions[i].name, name) == 0)
            return of_tensor(p, functions[i].apply(p, a, b));
    return fail(p, "an unknown function of two values");
}

static kn_tensor *softplus(kn_tensor *x) { return kn_softplus(x); }

/* The power of two that makes x its fraction, a constant. */
static kn_tensor *fraction_scale(kn_tensor *x)
{
    kn_tensor *exponent = NULL;
    return kn_frexp(x, &exponent) ? kn_exp2(kn_to_dtype(kn_neg(exponent), x->dtype)) : NULL;
}

static value function(parser *p, const char *name, const value *operand)
{
    static const struct {
        const char *name;
        kn_tensor *(*apply)(kn_tensor *x);
    } functions[] = {{"KN_SIGMOID", kn_sigmoid},
                     {"abs", kn_abs},
                     {"cos", kn_cos},
                     {"cosh", kn_cosh},
                     {"erfc", kn_erfc},
                     {"exp", kn_exp},
                     {"exp2", kn_exp2},
                     {"fabs", kn_abs},
                     {"kn_digamma", kn_digamma},
                     {"kn_fraction_scale", fraction_scale},
                     {"kn_i0", kn_i0},
                     {"kn_i0e", kn_i0e},
                     {"kn_i1", kn_i1},
                     {"kn_i1e", kn_i1e},
                     {"kn_log_ndtr", kn_log_ndtr},
                     {"kn_sigmoid", kn_sigmoid},
                     {"kn_softplus", softplus},
                     {"lgamma", kn_lgamma},
                     {"log", kn_log},
                     {"log1p", kn_log1p},
                     {"sin", kn_sin},
                     {"sinh", kn_sinh},
                     {"sqrt", kn_sqrt},
                     {"tanh", kn_tanh}};
    if (!operand->tensor && strcmp(name, "log") == 0)
        return (value){.number = log(operand->number)};
    for (size_t i = 0; operand->tensor && i < sizeof functions / sizeof functions[0]; i++)
        if (strcmp(functions[i].name, name) == 0)
            return of_tensor(p, functions[i].apply(operand->tensor));
    return fail(p, "an unknown function");
}

static value call(parser *p, const char *name)
{
    const value first = ternary(p);
    if (accept(p, ",")) {
        const value second = ternary(p);
        expect(p, ")");
        return function_of_two(p, name, &first, &second);
    }
    expect(p, ")");
    return p->failed ? first : function(p, name, &first);
}

/* --- levels of precedence ----------------------------------------------------------------------------------------- */

static value name_or_call(parser *p)
{
    char name[32];
    const size_t length = kn_identifier_length(p->at);
    if (length == 0 || length >= sizeof name)
        return fail(p, "no operand");
    memcpy(name, p->at, length);
    name[length] = '\0';
    p->at += length;
    if (accept(p, "("))
        return call(p, name);
    if (strcmp(name, "INFINITY") == 0)
        return (value){.number = (double)INFINITY};
    const char *letter = length == 1 ? strchr(p->letters, name[0]) : NULL;
    return letter ? p->operands[letter - p->letters] : fail(p, "an unknown operand");
}

static value primary(parser *p)
{
    if (accept(p, "(T)"))
        return primary(p);
    if (accept(p, "(")) {
        const value inner = ternary(p);
        expect(p, ")");
        return inner;
    }
    if (accept(p, "-")) {
        const value operand = primary(p);
        if (!p->failed && operand.tensor)
            return of_tensor(p, kn_neg(operand.tensor));
        return (value){.number = -operand.number};
    }
    if (isdigit((unsigned char)*p->at)) {
        char *end;
        KN_PLAIN_NUMBERS;
        const double number = strtod(p->at, &end);
        p->at = *end == 'f' ? end + 1 : end;
        return (value){.number = number};
    }
    return name_or_call(p);
}

static value product(parser *p)
{
    value left = primary(p);
    for (;;) {
        if (accept(p, "*"))
            left = binary(p, '*', left, primary(p));
        else if (accept(p, "/"))
            left = binary(p, '/', left, primary(p));
        else
            return left;
    }
}

static value sum(parser *p)
{
    value left = product(p);
    for (;;) {
        if (accept(p, "+"))
            left = binary(p, '+', left, product(p));
        else if (accept(p, "-"))
            left = binary(p, '-', left, product(p));
        else
            return left;
    }
}

static value comparison(parser *p)
{
    static const struct {
        const char *token;
        char sign;
    } signs[] = {{"<=", 'l'}, {">=", 'g'}, {"<", '<'}, {">", '>'}, {"==", '='}, {"!=", '!'}};
    const value left = sum(p);
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
        if (accept(p, signs[i].token))
            return binary(p, signs[i].sign, left, sum(p));
    return left;
}

static value conjunction(parser *p)
{
    value left = comparison(p);
    while (accept(p, "&&"))
        left = binary(p, '&', left, comparison(p));
    return left;
}

static value disjunction(parser *p)
{
    value left = conjunction(p);
    while (accept(p, "||"))
        left = binary(p, '|', left, conjunction(p));
    return left;
}

static value ternary(parser *p)
{
    const value condition = disjunction(p);
    if (p->failed || !accept(p, "?"))
        return condition;
    const value yes = ternary(p);
    expect(p, ":");
    const value no = ternary(p);
    return choose(p, condition, yes, no);
}

/* That of the first floating tensor. */
static kn_dtype dtype_of(const char *letters, const kn_composed *operands)
{
    for (int i = 0; letters[i]; i++)
        if (operands[i].tensor && kn_dtype_is_floating(operands[i].tensor->dtype))
            return operands[i].tensor->dtype;
    return KN_F32;
}

kn_tensor *kn_compose(const char *text, const char *letters, const kn_composed *operands)
{
    parser p = {
        .text = text, .at = text, .letters = letters, .operands = operands, .dtype = dtype_of(letters, operands)};
    value result = ternary(&p);
    while (isspace((unsigned char)*p.at))
        p.at++;
    if (!p.failed && !result.tensor && operands[0].tensor) /* a constant, because a parameter makes it one */
        result = of_tensor(&p, kn_full_like(operands[0].tensor, result.number));
    if (*p.at || !result.tensor)
        fail(&p, "something unexpected");
    return p.failed ? kn_error_make_sticky() : result.tensor;
}
