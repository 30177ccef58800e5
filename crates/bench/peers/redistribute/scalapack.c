/* Redistribution by ScaLAPACK's pdgemr2d. */
#include <stdlib.h>
#include "peer.h"

extern void Cblacs_pinfo(int*, int*);
extern void Cblacs_get(int, int, int*);
extern void Cblacs_gridinit(int*, char*, int, int);
extern void Cblacs_gridexit(int);
extern void Cpdgemr2d(int, int, double*, int, int, int*, double*, int, int, int*, int);
extern int  numroc_(int*, int*, int*, int*, int*);

typedef struct { int m, n, all, before[9], after[9]; } Peer;

int peer_ways(void) { return 1; }
const char *peer_name(int way) { return "pdgemr2d"; }

static void describe(int *d, const long *extent, const struct side *s, int me, int system) {
    int zero = 0, m = extent[0], mb = s->block[0], pr = s->grid[0], row = me % pr, context = system;
    Cblacs_gridinit(&context, "C", s->grid[0], s->grid[1]);
    int local = numroc_(&m, &mb, &row, &zero, &pr);
    int all[9] = { 1, context, m, extent[1], mb, s->block[1], 0, 0, local > 1 ? local : 1 };
    for (int k = 0; k < 9; k++) d[k] = all[k];
}

void *peer_open(const struct redistribution *w, int way) {
    int me, np, system;
    Cblacs_pinfo(&me, &np); Cblacs_get(-1, 0, &system);
    if (w->before.grid[0] * w->before.grid[1] != np || w->after.grid[0] * w->after.grid[1] != np) return NULL;
    Peer *p = malloc(sizeof *p);
    p->m = w->extent[0]; p->n = w->extent[1];
    describe(p->before, w->extent, &w->before, me, system);
    describe(p->after, w->extent, &w->after, me, system);
    p->all = system; Cblacs_gridinit(&p->all, "R", 1, np);
    return p;
}

int peer_move(void *peer, const double *source, double *target) {
    Peer *p = peer;
    Cpdgemr2d(p->m, p->n, (double *)source, 1, 1, p->before, target, 1, 1, p->after, p->all);
    return 0;
}

void peer_close(void *peer) {
    Peer *p = peer;
    Cblacs_gridexit(p->before[1]); Cblacs_gridexit(p->after[1]); Cblacs_gridexit(p->all);
    free(p);
}
