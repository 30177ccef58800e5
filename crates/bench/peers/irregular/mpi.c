/* Irregular ownership written directly on MPI.
 *
 *   twophase  Alltoallv of the values to the owner of a contiguous block, one pwrite a rank; reads in
 *             reverse. Counts, slots and the indices of the others are exchanged in the plan.
 *   indexed   MPI-IO, collective, with MPI_Type_create_indexed_block as file view. Displacements must be
 *             monotone, so the plan sorts the indices; each call permutes the data between the two orders.
 *   direct    one pwrite or pread an element, in the order owned.
 *
 * Buffers for values are kept from one plan to the next. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <unistd.h>
#include "peer.h"

enum { TWOPHASE, INDEXED, DIRECT, WAYS };
static const char *names[] = { "twophase", "indexed", "direct" };

typedef struct { int g, l; } Pair;                       /* global index, local position */
static int by_index(const void *a, const void *b) { return ((const Pair*)a)->g - ((const Pair*)b)->g; }

typedef struct {
    int way, np, fd; long n, b0, b1; const int *own;
    int *cnt, *dis, *rcnt, *rdis, *ri, *slot;            /* slot[k]: place of element k in the send order */
    Pair *srt; MPI_File fh; MPI_Datatype type;
} Peer;

static double *kept[3]; static long room[3];
static double *buffer(int k, long n) {
    if (n > room[k]) { free(kept[k]); kept[k] = malloc(n * 8); memset(kept[k], 0, n * 8); room[k] = n; }
    return kept[k];
}

int peer_ways(void) { return WAYS; }
const char *peer_name(int way) { return names[way]; }

static void exchange_plan(Peer *p, long N, int me) {
    int np = p->np; long n = p->n; const int *own = p->own;
    p->cnt = calloc(np, 4); p->dis = calloc(np, 4); p->rcnt = calloc(np, 4); p->rdis = calloc(np, 4);
    long per = (N + np - 1) / np; p->b0 = me * per > N ? N : me * per; p->b1 = p->b0 + per > N ? N : p->b0 + per;
    for (long k = 0; k < n; k++) p->cnt[own[k] / per]++;
    for (int q = 1; q < np; q++) p->dis[q] = p->dis[q-1] + p->cnt[q-1];
    MPI_Alltoall(p->cnt, 1, MPI_INT, p->rcnt, 1, MPI_INT, MPI_COMM_WORLD);
    for (int q = 1; q < np; q++) p->rdis[q] = p->rdis[q-1] + p->rcnt[q-1];
    p->slot = malloc(n * 4); int *at = malloc(np * 4), *si = malloc(n * 4); memcpy(at, p->dis, np * 4);
    for (long k = 0; k < n; k++) { p->slot[k] = at[own[k] / per]++; si[p->slot[k]] = own[k]; }
    p->ri = malloc((p->b1 - p->b0) * 4);
    MPI_Alltoallv(si, p->cnt, p->dis, MPI_INT, p->ri, p->rcnt, p->rdis, MPI_INT, MPI_COMM_WORLD);
    free(at); free(si);
}

void *peer_open(const struct irregular *w, int way) {
    int me; Peer *p = calloc(1, sizeof *p); long n = w->count;
    MPI_Comm_rank(MPI_COMM_WORLD, &me); MPI_Comm_size(MPI_COMM_WORLD, &p->np);
    p->way = way; p->n = n; p->own = w->own; p->fd = -1;
    if (way == INDEXED) {
        p->srt = malloc(n * sizeof *p->srt);
        for (long k = 0; k < n; k++) p->srt[k] = (Pair){ w->own[k], (int)k };
        qsort(p->srt, n, sizeof *p->srt, by_index);
        int *dp = malloc(n * 4); for (long k = 0; k < n; k++) dp[k] = p->srt[k].g;
        MPI_Type_create_indexed_block((int)n, 1, dp, MPI_DOUBLE, &p->type); MPI_Type_commit(&p->type); free(dp);
        if (MPI_File_open(MPI_COMM_WORLD, (char *)w->file, MPI_MODE_RDWR, MPI_INFO_NULL, &p->fh)) { free(p->srt); free(p); return NULL; }
        MPI_File_set_view(p->fh, 0, MPI_DOUBLE, p->type, "native", MPI_INFO_NULL);
        return p;
    }
    p->fd = open(w->file, O_RDWR);
    if (p->fd < 0) { free(p); return NULL; }
    if (way == TWOPHASE) exchange_plan(p, w->elements, me);
    return p;
}

int peer_move(void *peer, double *x, int wr) {
    Peer *p = peer; long n = p->n, block = p->b1 - p->b0; int e = 0;
    if (p->way == INDEXED) {
        double *tmp = buffer(0, n);
        if (wr) for (long k = 0; k < n; k++) tmp[k] = x[p->srt[k].l];
        MPI_File_seek(p->fh, 0, MPI_SEEK_SET);
        e = wr ? MPI_File_write_all(p->fh, tmp, (int)n, MPI_DOUBLE, MPI_STATUS_IGNORE)
               : MPI_File_read_all(p->fh, tmp, (int)n, MPI_DOUBLE, MPI_STATUS_IGNORE);
        if (!wr) for (long k = 0; k < n; k++) x[p->srt[k].l] = tmp[k];
        return e;
    }
    if (p->way == DIRECT) {
        for (long k = 0; k < n; k++)
            e |= (wr ? pwrite(p->fd, x+k, 8, p->own[k]*8L) : pread(p->fd, x+k, 8, p->own[k]*8L)) != 8;
        return e;
    }
    double *sv = buffer(0, n), *rv = buffer(1, block), *blk = buffer(2, block);
    if (wr) {
        for (long k = 0; k < n; k++) sv[p->slot[k]] = x[k];
        MPI_Alltoallv(sv, p->cnt, p->dis, MPI_DOUBLE, rv, p->rcnt, p->rdis, MPI_DOUBLE, MPI_COMM_WORLD);
        for (long k = 0; k < block; k++) blk[p->ri[k]-p->b0] = rv[k];
        return pwrite(p->fd, blk, block*8, p->b0*8) != block*8;
    }
    if (pread(p->fd, blk, block*8, p->b0*8) != block*8) e = 1;
    for (long k = 0; k < block; k++) rv[k] = blk[p->ri[k]-p->b0];
    MPI_Alltoallv(rv, p->rcnt, p->rdis, MPI_DOUBLE, sv, p->cnt, p->dis, MPI_DOUBLE, MPI_COMM_WORLD);
    for (long k = 0; k < n; k++) x[k] = sv[p->slot[k]];
    return e;
}

void peer_close(void *peer) {
    Peer *p = peer;
    if (p->way == INDEXED) { MPI_File_close(&p->fh); MPI_Type_free(&p->type); } else close(p->fd);
    free(p->cnt); free(p->dis); free(p->rcnt); free(p->rdis); free(p->ri); free(p->slot); free(p->srt); free(p);
}
