/* What a library offers so that `outcore bench collective --peers` can let it take turns with outcore.
 *
 * The bench builds each library of this directory with the C compiler of its own MPI and loads it into
 * its own processes. All ranks of MPI_COMM_WORLD call open, move and close together. FILE holds an array
 * without a header; a library with a format of its own makes a file beside it from that.
 */
#include <stddef.h>

#define MOST_AXES 8

/* A section of an array; the first axis is the one that varies fastest in the file. */
struct section {
    int axes;
    int size;                                  /* bytes of an element */
    long shape[MOST_AXES];                     /* of the array */
    long start[MOST_AXES], stride[MOST_AXES], count[MOST_AXES];
};

const char *peer_name(void);
/* What moves this rank's section; NULL if it cannot. */
void *peer_open(const char *file, const struct section *section, int collective);
/* Reads the section into the buffer, or writes it from there; 0 if it could. */
int peer_move(void *peer, void *buffer, int write);
void peer_close(void *peer);
