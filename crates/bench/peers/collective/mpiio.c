/* MPI-IO: one view of the file for each section, read and written independently or collectively. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include "peer.h"

struct peer { MPI_File file; MPI_Datatype element, view; int count, collective; };

const char *peer_name(void) {
#ifdef OPEN_MPI
    const char *io = getenv("OMPI_MCA_io");
    return io && !strncmp(io, "romio", 5) ? "romio" : "ompio";
#else
    return "mpich";
#endif
}

void *peer_open(const char *file, const struct section *s, int collective) {
    struct peer *p = malloc(sizeof *p);
    if (s->size == 4) MPI_Type_dup(MPI_FLOAT, &p->element);
    else if (s->size == 8) MPI_Type_dup(MPI_DOUBLE, &p->element);
    else MPI_Type_contiguous(s->size, MPI_BYTE, &p->element);
    MPI_Type_commit(&p->element);
    MPI_Type_dup(p->element, &p->view);
    MPI_Offset at = 0, step = s->size;
    p->count = 1;
    for (int a = 0; a < s->axes; a++) {
        MPI_Datatype inner = p->view;
        if (a == 0 && s->stride[a] == 1) MPI_Type_contiguous(s->count[a], inner, &p->view);
        else MPI_Type_create_hvector(s->count[a], 1, s->stride[a] * step, inner, &p->view);
        MPI_Type_free(&inner);
        at += s->start[a] * step;
        step *= s->shape[a];
        p->count *= s->count[a];
    }
    MPI_Type_commit(&p->view);
    p->collective = collective;
    int rc = MPI_File_open(MPI_COMM_WORLD, file, MPI_MODE_RDWR, MPI_INFO_NULL, &p->file);
    if (rc == MPI_SUCCESS) rc = MPI_File_set_view(p->file, at, p->element, p->view, "native", MPI_INFO_NULL);
    if (rc == MPI_SUCCESS) return p;
    free(p);
    return NULL;
}

int peer_move(void *peer, void *buffer, int write) {
    struct peer *p = peer;
    MPI_Status *none = MPI_STATUS_IGNORE;
    if (p->collective)
        return write ? MPI_File_write_at_all(p->file, 0, buffer, p->count, p->element, none)
                     : MPI_File_read_at_all(p->file, 0, buffer, p->count, p->element, none);
    return write ? MPI_File_write_at(p->file, 0, buffer, p->count, p->element, none)
                 : MPI_File_read_at(p->file, 0, buffer, p->count, p->element, none);
}

void peer_close(void *peer) {
    struct peer *p = peer;
    MPI_File_close(&p->file);
    MPI_Type_free(&p->view);
    MPI_Type_free(&p->element);
    free(p);
}
