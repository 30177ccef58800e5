/* Peer: Disk Resident Arrays over Global Arrays (ARMCI-MPI in Debian).
 *
 * dra DIR [REPS]: collective reads of sections of a 4096x4096 double array whose file is in DIR,
 * warm; the time of one read until DRA_Wait and GA_Sync have returned on all ranks.
 * Build: mpicc.openmpi -O2 -o dra dra.c -lga-openmpi -lscalapack-openmpi -llapack -lblas
 *        -larmci-openmpi -lgfortran -lm
 * Prints: peer,case,nprocs,bytes,best_s,median_s,ok|WRONG
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ga.h"
#include "macdecls.h"
#include "dra.h"

#define SIDE 4096

static int me, np, reps;
static double *ts;

static int cmp(const void *a, const void *b) { double x = *(double *)a, y = *(double *)b; return x < y ? -1 : x > y; }

static void line(const char *c, long bytes, long bad) {
    long all;
    MPI_Allreduce(&bad, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    qsort(ts, reps, 8, cmp);
    if (!me) printf("dra,%s,%d,%ld,%.9f,%.9f,%s\n", c, np, bytes, ts[0], ts[reps / 2], all ? "WRONG" : "ok"), fflush(stdout);
}

/* Fills this rank's part of g, or counts its wrong elements; outside of [l,h] they must be zero. */
static long mine(int g, int fill, int *l, int *h) {
    int lo[2], hi[2], ld[1];
    double *p;
    long bad = 0;
    NGA_Distribution(g, me, lo, hi);
    if (lo[0] < 0) return 0;
    NGA_Access(g, lo, hi, &p, ld);
    for (int i = lo[0]; i <= hi[0]; i++)
        for (int j = lo[1]; j <= hi[1]; j++) {
            double *e = p + (long)(i - lo[0]) * ld[0] + (j - lo[1]);
            int in = i >= l[0] && i <= h[0] && j >= l[1] && j <= h[1];
            double w = in ? (double)((long)i * SIDE + j) : 0;
            if (fill) *e = w; else bad += *e != w;
        }
    if (fill) NGA_Release_update(g, lo, hi); else NGA_Release(g, lo, hi);
    return bad;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    GA_Initialize();
    me = GA_Nodeid(); np = GA_Nnodes();
    if (argc < 2) GA_Error("usage: dra DIR [REPS]", 2);
    reps = argc > 2 ? atoi(argv[2]) : 7;
    ts = calloc(reps, 8);
    MA_init(C_DBL, 8000000, 8000000);
    int dims[2] = { SIDE, SIDE }, all0[2] = { 0, 0 }, all1[2] = { SIDE - 1, SIDE - 1 }, d, rq;
    int g = NGA_Create(C_DBL, 2, dims, "g", NULL);
    dra_size_t dd[2] = { SIDE, SIDE }, rd[2] = { 1024, 1024 };
    char fn[512], c[64];
    snprintf(fn, sizeof fn, "%s/dra_peer", argv[1]);
    DRA_Init(8, 1e10, 1e11, 64e6);
    if (NDRA_Create(MT_DBL, 2, dd, "disk", fn, DRA_RW, rd, &d)) GA_Error("NDRA_Create", 1);
    mine(g, 1, all0, all1);
    GA_Sync();
    NDRA_Write(g, d, &rq); DRA_Wait(rq); GA_Sync();
    static const int sh[][2] = { { 100, 100 }, { 1024, 1024 }, { 16, SIDE - 256 }, { SIDE - 256, 16 } };
    for (int k = 0; k < 4; k++) {
        int lo[2] = { 64, 128 }, hi[2] = { 64 + sh[k][0] - 1, 128 + sh[k][1] - 1 };
        dra_size_t dl[2] = { lo[0], lo[1] }, dh[2] = { hi[0], hi[1] };
        for (int r = -1; r < reps; r++) {                 /* the first does not count */
            GA_Zero(g);
            GA_Sync();
            double t = MPI_Wtime();
            if (NDRA_Read_section(0, g, lo, hi, d, dl, dh, &rq)) GA_Error("NDRA_Read_section", 1);
            DRA_Wait(rq);
            GA_Sync();
            t = MPI_Wtime() - t;
            double most;
            MPI_Allreduce(&t, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            if (r >= 0) ts[r] = most;
        }
        snprintf(c, sizeof c, "read:%dx%d", sh[k][0], sh[k][1]);
        line(c, 8L * sh[k][0] * sh[k][1], mine(g, 0, lo, hi));
    }
    DRA_Delete(d); DRA_Terminate(); GA_Destroy(g);
    GA_Terminate(); MPI_Finalize();
    return 0;
}
