/* SPDX-License-Identifier: MIT
 *
 * Which of two predictions is faster, and how sure is that: part of libtrainyard. The errors of
 * two predictions of one model on one kind of GPU have most of their causes in common, so their
 * ratio is known better than either. docs/calibration.md, "Ratios"
 */
#ifndef TRAINYARD_RATIO_H
#define TRAINYARD_RATIO_H

#include "trainyard.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A prediction and what it was made for. The pointers are read during the call only. */
struct ty_rated {
    const struct ty_model *model;
    const struct ty_cluster *cluster;
    const struct ty_profile *profile;
    const struct ty_plan *plan;
    double time_s; /* > 0; what is compared: of a step, or of a token on a GPU */
};

/* What the errors of the two have in common. */
enum ty_kinship {
    TY_KIN_PLANS, /* model, software, site and kind of GPU: two plans */
    TY_KIN_GPUS,  /* model and software: two kinds of GPU */
    TY_KIN_NONE   /* nothing, or nothing is known of such ratios */
};

struct ty_ratio {
    enum ty_kinship kinship;
    double ratio;                          /* time of a over time of b */
    double interval_80[2], interval_90[2]; /* of the ratio; NAN when nothing is known of errors */
    double p_faster;                       /* probability that a takes less time; 0.5 for equal
                                              times; NAN as above */
};

/* Interval ratio x exp(-+h) with the half widths h of the class (interval.*_plans_*, _gpus_* of
 * the profile of a; without kinship sqrt(h_a^2 + h_b^2) of the single predictions). Probability:
 * P(|ln error| > x) = exp(-g(x)), g linear through (0, 0), (h_80, ln 5), (h_90, ln 10). Pure; cost
 * below 1 us. */
TY_API void ty_ratio_of(const struct ty_rated *a, const struct ty_rated *b, struct ty_ratio *out);
/* Two plans of a search under the first objective of its goal (none: tokens/s per GPU), which is
 * taken to be off as the step time is: ratio < 1 where a is better. */
TY_API void ty_ratio_of_scores(const struct ty_search *search, const struct ty_score *a,
                               const struct ty_score *b, struct ty_ratio *out);
/* The plan of a list with the best worst case: the one whose ratio to the best of the others has
 * the smallest upper end in 90 % of runs; ties: the first. Errors of plans of one search are of one
 * class, so the best of the others is the one with the smallest figure. */
struct ty_robust {
    uint32_t plan, other;  /* in the list: the choice, and the best of the others */
    struct ty_ratio ratio; /* of the two; interval_90[1]: the worst case */
};
/* false: n < 2, or nothing is known of errors. Pure; cost n x 1 us. */
TY_API bool ty_robust_of_scores(const struct ty_search *search, const struct ty_score *scores,
                                uint32_t n, struct ty_robust *out);
/* "plans", "gpus", "none". */
TY_API const char *ty_kinship_name(enum ty_kinship kinship);

#ifdef __cplusplus
}
#endif
#endif
