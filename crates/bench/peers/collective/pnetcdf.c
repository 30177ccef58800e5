/* PnetCDF: a variable in FILE.nc. Files of netCDF are big-endian, so each transfer swaps bytes, too. */
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "peer.h"

struct peer { int file, variable, collective; MPI_Offset at[MOST_AXES], stride[MOST_AXES], count[MOST_AXES], all; MPI_Datatype type; };

const char *peer_name(void) {
    const char *io = getenv("OMPI_MCA_io");
    return io && !strncmp(io, "romio", 5) ? "pnetcdf/romio" : "pnetcdf";
}

/* Copies the array into a new netCDF file; on one rank. */
static int make(const char *raw, const char *name, const struct section *s, MPI_Datatype type) {
    int file, variable, axes[MOST_AXES];
    MPI_Offset elements = 1;
    if (ncmpi_create(MPI_COMM_SELF, name, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file)) return 0;
    for (int a = s->axes - 1; a >= 0; a--) {
        char axis[16];
        snprintf(axis, sizeof axis, "axis%d", a);
        if (ncmpi_def_dim(file, axis, s->shape[a], &axes[s->axes - 1 - a])) return 0;
        elements *= s->shape[a];
    }
    if (ncmpi_def_var(file, "a", s->size == 4 ? NC_FLOAT : NC_DOUBLE, s->axes, axes, &variable)) return 0;
    if (ncmpi_enddef(file)) return 0;
    void *values = malloc(elements * s->size);
    FILE *in = fopen(raw, "rb");
    int ok = values && in && fread(values, s->size, elements, in) == (size_t)elements
        && !ncmpi_put_var_all(file, variable, values, elements, type);
    if (in) fclose(in);
    free(values);
    return !ncmpi_close(file) && ok;
}

void *peer_open(const char *file, const struct section *s, int collective) {
    char name[4096];
    int me, ok = 1;
    snprintf(name, sizeof name, "%s.nc", file);
    if (s->axes == 0 || (s->size != 4 && s->size != 8)) return NULL;
    struct peer *p = malloc(sizeof *p);
    p->type = s->size == 4 ? MPI_FLOAT : MPI_DOUBLE;
    p->collective = collective;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    if (!me && access(name, R_OK)) ok = make(file, name, s, p->type);
    MPI_Bcast(&ok, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!ok || ncmpi_open(MPI_COMM_WORLD, name, NC_WRITE, MPI_INFO_NULL, &p->file)) { free(p); return NULL; }
    ncmpi_inq_varid(p->file, "a", &p->variable);
    if (!collective) ncmpi_begin_indep_data(p->file);
    p->all = 1;
    for (int a = 0; a < s->axes; a++) {
        int d = s->axes - 1 - a;
        p->at[d] = s->start[a]; p->stride[d] = s->stride[a]; p->count[d] = s->count[a];
        p->all *= s->count[a];
    }
    return p;
}

int peer_move(void *peer, void *buffer, int write) {
    struct peer *p = peer;
    int f = p->file, v = p->variable;
    if (p->collective)
        return write ? ncmpi_put_vars_all(f, v, p->at, p->count, p->stride, buffer, p->all, p->type)
                     : ncmpi_get_vars_all(f, v, p->at, p->count, p->stride, buffer, p->all, p->type);
    return write ? ncmpi_put_vars(f, v, p->at, p->count, p->stride, buffer, p->all, p->type)
                 : ncmpi_get_vars(f, v, p->at, p->count, p->stride, buffer, p->all, p->type);
}

void peer_close(void *peer) {
    struct peer *p = peer;
    if (!p->collective) ncmpi_end_indep_data(p->file);
    ncmpi_close(p->file);
    free(p);
}
