/* Peer: MPI_Alltoall, 8 B .. 1 MiB per pair of ranks.
 *
 * alltoall [REPS=7] [BUDGET_MS=60] [LARGEST=1048576]
 *   REPS       timed repetitions per size (each repetition is a batch of calls)
 *   LARGEST    the largest size to measure
 *   BUDGET_MS  target length of one batch; the number of calls is calibrated once
 * Build:  mpicc.openmpi -O2 -o alltoall.ompi alltoall.c     (or mpicc.mpich)
 * Run:    mpirun -n 2|4|8 ./alltoall
 * Prints: peer,case,nprocs,bytes,best_s,median_s,ok|WRONG
 *   bytes = all bytes exchanged by one call (np*np*size); times are per call and are
 *   the slowest rank's time of the batch divided by the number of calls.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef OPEN_MPI
#define MPI_NAME "openmpi"
#else
#define MPI_NAME "mpich"
#endif

static int cmp(const void *a, const void *b) { double x = *(double*)a, y = *(double*)b; return x<y?-1:x>y; }
static unsigned char pat(int from, int to, long k, int salt) { return (unsigned char)(from*37 + to*11 + k*7 + salt); }

/* time n calls, slowest rank, per call */
static double batch(char *s, char *r, int size, int n) {
    MPI_Barrier(MPI_COMM_WORLD);
    double t0 = MPI_Wtime();
    for (int i = 0; i < n; i++) MPI_Alltoall(s, size, MPI_BYTE, r, size, MPI_BYTE, MPI_COMM_WORLD);
    double t = MPI_Wtime() - t0, m;
    MPI_Allreduce(&t, &m, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return m / n;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int me, np; MPI_Comm_rank(MPI_COMM_WORLD, &me); MPI_Comm_size(MPI_COMM_WORLD, &np);
    int reps = argc > 1 ? atoi(argv[1]) : 7;
    double budget = (argc > 2 ? atof(argv[2]) : 60) * 1e-3;
    double *ts = malloc(reps * sizeof *ts);
    static const long sizes[] = { 8, 64, 512, 4096, 32768, 262144, 1048576 };
    long largest = argc > 3 ? atol(argv[3]) : 1048576;
    for (int z = 0; z < 7 && sizes[z] <= largest; z++) {
        long size = sizes[z];
        char *s = malloc(size*np), *r = malloc(size*np);
        int salt = (int)(size % 251) + 1;
        for (int d = 0; d < np; d++) for (long k = 0; k < size; k++) s[d*size+k] = pat(me, d, k, salt);
        memset(r, 0, size*np);
        batch(s, r, size, 2);                                  /* warm up, then calibrate */
        double t1 = batch(s, r, size, 4);
        int n = (int)(budget / t1); if (n < 1) n = 1; if (n > 20000) n = 20000;
        MPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD);
        memset(r, 0, size*np);
        for (int i = 0; i < reps; i++) ts[i] = batch(s, r, size, n);
        long bad = 0, all;
        for (int o = 0; o < np; o++) for (long k = 0; k < size; k++) bad += (unsigned char)r[o*size+k] != pat(o, me, k, salt);
        MPI_Allreduce(&bad, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        qsort(ts, reps, sizeof *ts, cmp);
        if (!me) printf("%s-alltoall,pair=%ldB,%d,%ld,%.9f,%.9f,%s\n", MPI_NAME, size, np, size*np*np, ts[0], ts[reps/2], all ? "WRONG" : "ok"), fflush(stdout);
        free(s); free(r);
    }
    MPI_Finalize(); return 0;
}
