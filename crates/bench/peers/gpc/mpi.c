/* Passive-target one-sided MPI: MPI_Win_lock_all once, then MPI_Get or MPI_Put and MPI_Win_flush a call. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include "peer.h"

typedef struct { char *base; MPI_Win window; } Peer;

void *peer_open(long bytes, const char *content) {
    Peer *p = malloc(sizeof *p); int me;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    /* Whole pages, because MPICH 4.0.2 (ch4:ucx) reads the wrong place otherwise. */
    long whole = (bytes + 4095) / 4096 * 4096;
    if (MPI_Win_allocate(whole, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &p->base, &p->window)) { free(p); return NULL; }
    MPI_Win_lock_all(0, p->window);
    memset(p->base, 0, whole);
    if (me == 1) memcpy(p->base, content, bytes);
    MPI_Win_sync(p->window);
    MPI_Barrier(MPI_COMM_WORLD);
    return p;
}

int peer_move(void *peer, char *buffer, long bytes, int write) {
    Peer *p = peer;
    int bad = write ? MPI_Put(buffer, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, p->window)
                    : MPI_Get(buffer, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, p->window);
    return bad ? bad : MPI_Win_flush(1, p->window);
}

void peer_close(void *peer) {
    Peer *p = peer;
    MPI_Win_unlock_all(p->window);
    MPI_Win_free(&p->window);
    free(p);
}
