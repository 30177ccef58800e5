/* Redistribution written directly on MPI: MPI_Alltoallw with one derived type per partner and side, and
 * packing by loops, MPI_Alltoallv, unpacking by loops. Types and index sets are made beforehand.
 *
 * In each dimension the index set "mine here and q's there" repeats with the period lcm(p1 b1, p2 b2), so a
 * type is an hvector of one period plus a tail, nested over the two dimensions (much smaller than a full
 * indexed type). */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include "peer.h"

static long gcd(long a, long b) { return b ? gcd(b, a % b) : a; }
static int own(long g, long b, int p) { return (int)((g / b) % p); }
static long loc(long g, long b, int p) { return g / (b * p) * b + g % b; }
static long cnt(long n, long b, int p, int me) {
    long full = n / (b * p), rest = n - full * b * p, r = rest - me * b;
    return full * b + (r < 0 ? 0 : r > b ? b : r);
}

/* Runs of local indices (of distribution b,p, process me), for global [lo,hi), whose owner under (ob,op) is q. */
typedef struct { int n; int *len, *at; long total; } Runs;
static Runs runs(long lo, long hi, long b, int p, int me, long ob, int op, int q) {
    Runs r = { 0, NULL, NULL, 0 }; int cap = 0;
    for (long g = lo; g < hi; ) {
        long e1 = (g / b + 1) * b, e2 = (g / ob + 1) * ob, e = e1 < e2 ? e1 : e2; if (e > hi) e = hi;
        if (own(g, b, p) == me && own(g, ob, op) == q) {
            long l = loc(g, b, p);
            if (r.n && r.at[r.n-1] + r.len[r.n-1] == l) r.len[r.n-1] += e - g;
            else {
                if (r.n == cap) { cap = cap ? 2*cap : 64; r.len = realloc(r.len, cap*sizeof(int)); r.at = realloc(r.at, cap*sizeof(int)); }
                r.at[r.n] = l; r.len[r.n++] = e - g;
            }
            r.total += e - g;
        }
        g = e;
    }
    return r;
}
static void clear(Runs *r) { free(r->len); free(r->at); }
/* the runs as a type; equal and evenly spaced runs (as in BLOCK -> CYCLIC) become a vector */
static MPI_Datatype runtype(const Runs *r, MPI_Datatype base, long ext) {
    MPI_Datatype t, v; int even = r->n > 2;
    for (int k = 1; even && k < r->n; k++) even = r->len[k] == r->len[0] && r->at[k] - r->at[k-1] == r->at[1] - r->at[0];
    if (!even) { MPI_Type_indexed(r->n, r->len, r->at, base, &t); return t; }
    int one = 1; MPI_Aint d = r->at[0] * ext;
    MPI_Type_create_hvector(r->n, r->len[0], (r->at[1] - r->at[0]) * ext, base, &v);
    MPI_Type_create_struct(1, &one, &d, &v, &t); MPI_Type_free(&v); return t;
}
/* type of one dimension over a base type of the given extent (bytes) */
static MPI_Datatype dimtype(long n, long b, int p, int me, long ob, int op, int q, MPI_Datatype base, long ext) {
    long x = b * p, y = ob * op, L = x / gcd(x, y) * y, full = L <= n ? n / L : 0;
    Runs pr = runs(0, full ? L : 0, b, p, me, ob, op, q), tr = runs(full * L, n, b, p, me, ob, op, q);
    MPI_Datatype t[2], one; MPI_Aint d[2] = { 0, 0 }; int bl[2] = { 1, 1 }, k = 0;
    if (full && pr.n) { MPI_Datatype s = runtype(&pr, base, ext); MPI_Type_create_hvector(full, 1, (L / p) * ext, s, &t[k++]); MPI_Type_free(&s); }
    if (tr.n) t[k++] = runtype(&tr, base, ext);
    MPI_Type_create_struct(k, bl, d, t, &one);
    for (int i = 0; i < k; i++) MPI_Type_free(&t[i]);
    clear(&pr); clear(&tr);
    return one;
}

/* one side, as this rank sees it */
typedef struct { long lr, lc, mb, nb; int pr, pc, myr, myc; } Mat;
static Mat make(const long *n, const struct side *s, int me) {
    Mat m = { 0, 0, s->block[0], s->block[1], s->grid[0], s->grid[1], me % s->grid[0], me / s->grid[0] };
    m.lr = cnt(n[0], m.mb, m.pr, m.myr); m.lc = cnt(n[1], m.nb, m.pc, m.myc);
    return m;
}
static MPI_Datatype pairtype(const long *n, const Mat *a, const Mat *o, int q) {
    MPI_Datatype d = dimtype(n[0], a->mb, a->pr, a->myr, o->mb, o->pr, q % o->pr, MPI_DOUBLE, 8), c, t;
    long ext = a->lr * 8; if (!ext) ext = 8;
    MPI_Type_create_resized(d, 0, ext, &c); MPI_Type_free(&d);
    t = dimtype(n[1], a->nb, a->pc, a->myc, o->nb, o->pc, q / o->pr, c, ext); MPI_Type_free(&c);
    MPI_Type_commit(&t); return t;
}
/* copy between the matrix and a packed buffer in global order; dir 0 = pack */
static void pack(const Mat *a, double *m, const Runs *ri, const Runs *rj, double *b, int dir) {
    for (int y = 0; y < rj->n; y++) for (long j = rj->at[y]; j < rj->at[y] + rj->len[y]; j++) {
        double *col = m + j * a->lr;
        for (int x = 0; x < ri->n; x++) {
            double *p = col + ri->at[x]; int n = ri->len[x];
            if (n > 32) { if (dir) memcpy(p, b, n * 8L); else memcpy(b, p, n * 8L); }
            else if (dir) for (int k = 0; k < n; k++) p[k] = b[k]; else for (int k = 0; k < n; k++) b[k] = p[k];
            b += n;
        }
    }
}

typedef struct {
    int way, np; Mat a, b;
    MPI_Datatype *st, *rt; int *ones, *zero;
    Runs *si, *sj, *ri, *rj; int *sc, *sd, *rc, *rd; double *sb, *rb;
} Peer;

int peer_ways(void) { return 2; }
const char *peer_name(int way) { return way ? "pack+alltoallv" : "alltoallw"; }

void *peer_open(const struct redistribution *w, int way) {
    int me; Peer *p = calloc(1, sizeof *p); p->way = way;
    MPI_Comm_rank(MPI_COMM_WORLD, &me); MPI_Comm_size(MPI_COMM_WORLD, &p->np);
    int np = p->np; const long *n = w->extent;
    if (w->before.grid[0] * w->before.grid[1] != np || w->after.grid[0] * w->after.grid[1] != np) { free(p); return NULL; }
    p->a = make(n, &w->before, me); p->b = make(n, &w->after, me);
    const Mat *a = &p->a, *b = &p->b;
    if (way == 0) {
        p->st = malloc(np * sizeof *p->st); p->rt = malloc(np * sizeof *p->rt); p->ones = malloc(np * 4); p->zero = calloc(np, 4);
        for (int q = 0; q < np; q++) { p->ones[q] = 1; p->st[q] = pairtype(n, a, b, q); p->rt[q] = pairtype(n, b, a, q); }
        return p;
    }
    p->si = malloc(np * sizeof(Runs)); p->sj = malloc(np * sizeof(Runs)); p->ri = malloc(np * sizeof(Runs)); p->rj = malloc(np * sizeof(Runs));
    p->sc = malloc(np*4); p->sd = malloc(np*4); p->rc = malloc(np*4); p->rd = malloc(np*4); long so = 0, ro = 0;
    for (int q = 0; q < np; q++) {
        p->si[q] = runs(0, n[0], a->mb, a->pr, a->myr, b->mb, b->pr, q % b->pr); p->sj[q] = runs(0, n[1], a->nb, a->pc, a->myc, b->nb, b->pc, q / b->pr);
        p->ri[q] = runs(0, n[0], b->mb, b->pr, b->myr, a->mb, a->pr, q % a->pr); p->rj[q] = runs(0, n[1], b->nb, b->pc, b->myc, a->nb, a->pc, q / a->pr);
        p->sc[q] = p->si[q].total * p->sj[q].total; p->rc[q] = p->ri[q].total * p->rj[q].total;
        p->sd[q] = so; p->rd[q] = ro; so += p->sc[q]; ro += p->rc[q];
    }
    p->sb = malloc(so * 8 + 8); p->rb = malloc(ro * 8 + 8); memset(p->sb, 0, so * 8); memset(p->rb, 0, ro * 8);
    return p;
}

int peer_move(void *peer, const double *source, double *target) {
    Peer *p = peer; double *s = (double *)source;
    if (p->way == 0) return MPI_Alltoallw(s, p->ones, p->zero, p->st, target, p->ones, p->zero, p->rt, MPI_COMM_WORLD);
    for (int q = 0; q < p->np; q++) pack(&p->a, s, &p->si[q], &p->sj[q], p->sb + p->sd[q], 0);
    int rc = MPI_Alltoallv(p->sb, p->sc, p->sd, MPI_DOUBLE, p->rb, p->rc, p->rd, MPI_DOUBLE, MPI_COMM_WORLD);
    for (int q = 0; q < p->np; q++) pack(&p->b, target, &p->ri[q], &p->rj[q], p->rb + p->rd[q], 1);
    return rc;
}

void peer_close(void *peer) {
    Peer *p = peer;
    for (int q = 0; q < p->np; q++) {
        if (p->way == 0) { MPI_Type_free(&p->st[q]); MPI_Type_free(&p->rt[q]); }
        else { clear(&p->si[q]); clear(&p->sj[q]); clear(&p->ri[q]); clear(&p->rj[q]); }
    }
    free(p->st); free(p->rt); free(p->ones); free(p->zero); free(p->si); free(p->sj); free(p->ri); free(p->rj);
    free(p->sc); free(p->sd); free(p->rc); free(p->rd); free(p->sb); free(p->rb); free(p);
}
