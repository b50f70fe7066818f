/* optim/lbfgs_search.c - a line search for the strong Wolfe conditions: Nocedal and Wright, "Numerical Optimization"
 * (2006), algorithms 3.5 and 3.6, with cubic interpolation and the safeguards of torch.optim.LBFGS. */
#include <math.h>

#include <koine/pointwise.h>
#include <koine/reduce.h>

#include "base/error.h"
#include "optim/lbfgs.h"

#define SUFFICIENT_DECREASE 1e-4 /* c1 */
#define CURVATURE 0.9            /* c2 */

typedef struct search {
    kn_lbfgs_run *run;
    const kn_lbfgs_point *first;
    double tolerance_change, reach; /* reach: the largest |d| */
    int most, made;                 /* evaluations */
    bool done;                      /* points[low] satisfies the conditions */
    kn_lbfgs_point points[2];       /* the ends of the bracket */
    int low;                        /* the one with the lower loss */
} search;

/* The minimum of the cubic through two points, within the bounds; their middle if there is none. */
static double minimum(const kn_lbfgs_point *p, const kn_lbfgs_point *q, double least, double most)
{
    const kn_lbfgs_point *left = p->t <= q->t ? p : q, *right = p->t <= q->t ? q : p;
    const double d1 = p->slope + q->slope - 3 * (p->loss - q->loss) / (p->t - q->t);
    const double square = d1 * d1 - p->slope * q->slope;
    if (!(square >= 0))
        return (least + most) / 2;
    const double d2 = sqrt(square);
    const double t =
        right->t - (right->t - left->t) * ((right->slope + d2 - d1) / (right->slope - left->slope + 2 * d2));
    return fmin(fmax(t, least), most);
}

static void replace(kn_lbfgs_point *point, kn_lbfgs_point with)
{
    kn_retain(with.gradient);
    kn_release(point->gradient);
    *point = with;
}

static bool decreases_too_little(const search *s, const kn_lbfgs_point *p)
{
    return p->loss > s->first->loss + SUFFICIENT_DECREASE * p->t * s->first->slope;
}

static bool is_flat(const search *s, const kn_lbfgs_point *p) { return fabs(p->slope) <= -CURVATURE * s->first->slope; }

static kn_status evaluate(search *s, kn_lbfgs_point *point)
{
    s->made++;
    return kn_lbfgs_evaluate(s->run, point, NULL);
}

/* Steps further and further until two points enclose a minimum, or one will do. The latest is points[1]. */
static kn_status bracket(search *s)
{
    kn_lbfgs_point *before = &s->points[0], *now = &s->points[1];
    KN_TRY(evaluate(s, now));
    for (int i = 0; i < s->most; i++) {
        if (decreases_too_little(s, now) || (i > 1 && now->loss >= before->loss))
            return KN_OK;
        s->done = is_flat(s, now);
        if (s->done || now->slope >= 0)
            return KN_OK;
        kn_lbfgs_point next = {.t = minimum(before, now, now->t + 0.01 * (now->t - before->t), 10 * now->t)};
        replace(before, *now);
        KN_TRY(evaluate(s, &next));
        replace(now, next);
        kn_release(next.gradient);
    }
    replace(before, *s->first);
    return KN_OK;
}

/* A point inside the bracket: not twice in a row near an end, nor at it. */
static double inside(const search *s, bool *was_near)
{
    const double a = s->points[0].t, b = s->points[1].t, least = fmin(a, b), most = fmax(a, b);
    const double margin = 0.1 * (most - least), t = minimum(&s->points[0], &s->points[1], least, most);
    const bool is_near = fmin(most - t, t - least) < margin;
    if (!is_near || !(*was_near || t >= most || t <= least)) {
        *was_near = is_near;
        return t;
    }
    *was_near = false;
    return fabs(t - most) < fabs(t - least) ? most - margin : least + margin;
}

/* Makes the bracket smaller until its lower end satisfies the conditions. */
static kn_status zoom(search *s)
{
    bool was_near = false;
    while (!s->done && s->made <= s->most) {
        if (fabs(s->points[1].t - s->points[0].t) * s->reach < s->tolerance_change)
            return KN_OK;
        kn_lbfgs_point next = {.t = inside(s, &was_near)};
        KN_TRY(evaluate(s, &next));
        kn_lbfgs_point *low = &s->points[s->low], *high = &s->points[1 - s->low];
        if (decreases_too_little(s, &next) || next.loss >= low->loss) {
            replace(high, next);
            s->low = s->points[0].loss <= s->points[1].loss ? 0 : 1;
        } else {
            s->done = is_flat(s, &next);
            if (!s->done && next.slope * (high->t - low->t) >= 0)
                replace(high, *low);
            replace(low, next);
        }
        kn_release(next.gradient);
    }
    return KN_OK;
}

static kn_status search_line(search *s)
{
    kn_tensor *reach = kn_max(kn_abs(s->run->direction));
    KN_TRY(reach ? kn_item(reach, &s->reach) : kn_error_status());
    KN_TRY(bracket(s));
    s->low = s->done || !(s->points[0].loss <= s->points[1].loss) ? 1 : 0;
    return zoom(s);
}

kn_status kn_lbfgs_search(kn_lbfgs_run *run, const kn_lbfgs_point *first, double tolerance_change, int most,
                          kn_lbfgs_point *found)
{
    search s = {.run = run, .first = first, .tolerance_change = tolerance_change, .most = most < 0 ? 0 : most};
    replace(&s.points[0], *first);
    s.points[1].t = found->t;
    const kn_status status = search_line(&s);
    if (status == KN_OK)
        replace(found, s.points[s.low]);
    kn_release(s.points[0].gradient);
    kn_release(s.points[1].gradient);
    return status;
}
