/* Peer: Global Arrays. NGA_Get, NGA_Put and NGA_Acc of sections of doubles that the
 * last rank owns, called by rank 0 (puts and accumulations with a fence, so that
 * they are complete at the owner), and NGA_Read_inc by one rank and by all.
 *
 * global_arrays REPEATS MILLISECONDS BYTES,BYTES,... SIDE,SIDE,...
 * Prints a line for each: op,case,bytes,best_s,median_s,ok|WRONG
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ga.h"
#include "macdecls.h"

static int me, ranks, repeats;
static double budget, *times;

static int by_time(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void print_line(const char *op, const char *what, long bytes, long wrong) {
    long all;
    MPI_Allreduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    qsort(times, repeats, sizeof(double), by_time);
    if (!me) {
        printf("%s,%s,%ld,%.9f,%.9f,%s\n", op, what, bytes, times[0], times[repeats / 2], all ? "WRONG" : "ok");
        fflush(stdout);
    }
}

enum { GET, PUT, ACCUMULATE };
static const char *names[] = { "get", "put", "accumulate" };

static double batch(int op, int array, int *low, int *high, int *width, double *values, int calls) {
    double one = 1, start = MPI_Wtime();
    for (int call = 0; call < calls; call++) {
        if (op == GET) { NGA_Get(array, low, high, values, width); continue; }
        GA_Init_fence();
        if (op == PUT) NGA_Put(array, low, high, values, width);
        else NGA_Acc(array, low, high, values, width, &one);
        GA_Fence();
    }
    return (MPI_Wtime() - start) / calls;
}

static void section(int array, int *low, int *high, int *width, long count, const char *what) {
    double *values = malloc(count * sizeof(double));
    for (int op = GET; op <= ACCUMULATE; op++) {
        long wrong = 0;
        double fill = op == GET ? 7 : 0;
        GA_Fill(array, &fill);
        GA_Sync();
        if (!me) {
            for (long at = 0; at < count; at++) values[at] = op == PUT ? at + 0.5 : op == ACCUMULATE ? 1 : 0;
            batch(op, array, low, high, width, values, 2);
            double once = batch(op, array, low, high, width, values, 4);
            long total = 6;
            int calls = budget / once;
            if (calls < 1) calls = 1;
            if (calls > 100000) calls = 100000;
            for (int turn = 0; turn < repeats; turn++) {
                times[turn] = batch(op, array, low, high, width, values, calls);
                total += calls;
            }
            if (op != GET) { memset(values, 0, count * sizeof(double)); NGA_Get(array, low, high, values, width); }
            for (long at = 0; at < count; at++)
                wrong += values[at] != (op == GET ? 7 : op == PUT ? at + 0.5 : (double)total);
        }
        GA_Sync();
        print_line(names[op], what, count * 8, wrong);
    }
    free(values);
}

static void read_increment(void) {
    int extent[1] = { ranks }, chunk[1] = { 1 }, at[1] = { ranks - 1 };
    int array = NGA_Create(C_LONG, 1, extent, "counter", chunk);
    for (int everyone = 0; everyone < 2; everyone++) {
        long calls = 0, sum;
        int turns = 1;
        GA_Zero(array);
        GA_Sync();
        if (!me) {
            double start = MPI_Wtime();
            for (; calls < 20; calls++) NGA_Read_inc(array, at, 1);
            turns = budget / ((MPI_Wtime() - start) / 20);
            if (turns < 1) turns = 1;
            if (turns > 100000) turns = 100000;
        }
        MPI_Bcast(&turns, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (everyone && turns >= ranks) turns /= ranks;
        for (int turn = 0; turn < repeats; turn++) {
            GA_Sync();
            double start = MPI_Wtime();
            if (everyone || !me) for (int call = 0; call < turns; call++, calls++) NGA_Read_inc(array, at, 1);
            double own = (MPI_Wtime() - start) / turns;
            MPI_Allreduce(&own, &times[turn], 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        }
        GA_Sync();
        MPI_Allreduce(&calls, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        print_line("read-increment", everyone ? "all ranks" : "one rank", 8, !me && NGA_Read_inc(array, at, 0) != sum);
    }
    GA_Destroy(array);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    GA_Initialize();
    me = GA_Nodeid();
    ranks = GA_Nnodes();
    if (argc < 5) GA_Error("arguments: see the top of the source", 2);
    repeats = atoi(argv[1]);
    budget = atof(argv[2]) * 1e-3;
    times = calloc(repeats, sizeof(double));
    MA_init(C_DBL, 8000000, 8000000);
    int low[2], high[2], width[1] = { 1 };
    char what[64];
    int extent[1] = { (1 << 18) * ranks }, line = NGA_Create(C_DBL, 1, extent, "line", NULL);
    for (char *text = strtok(argv[3], ","); text; text = strtok(NULL, ",")) {
        long bytes = atol(text);
        NGA_Distribution(line, ranks - 1, low, high);
        high[0] = low[0] + bytes / 8 - 1;
        snprintf(what, sizeof what, "%ld B", bytes);
        section(line, low, high, width, bytes / 8, what);
    }
    GA_Destroy(line);
    int extents[2] = { 2048, 2048 }, matrix = NGA_Create(C_DBL, 2, extents, "matrix", NULL);
    for (char *text = strtok(argv[4], ","); text; text = strtok(NULL, ",")) {
        int side = atoi(text);
        NGA_Distribution(matrix, ranks - 1, low, high);
        low[0]++; low[1]++;
        high[0] = low[0] + side - 1;
        high[1] = low[1] + side - 1;
        width[0] = side;
        snprintf(what, sizeof what, "%dx%d f64", side, side);
        section(matrix, low, high, width, (long)side * side, what);
    }
    GA_Destroy(matrix);
    read_increment();
    GA_Terminate();
    MPI_Finalize();
    return 0;
}
