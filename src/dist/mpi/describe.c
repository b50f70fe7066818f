/* dist/mpi/describe.c - which MPI this is, for `koine doctor`. */
#include <stdio.h>
#include <string.h>

#include "dist/mpi/mpi.h"

/* "Open MPI v4.1.4, package: ..." and "MPICH Version:      4.0.2\n..." become "Open MPI v4.1.4" and "MPICH 4.0.2". */
void koine_transport_describe(char *text, size_t size)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length;
    if (MPI_Get_library_version(version, &length) != MPI_SUCCESS)
        version[0] = '\0';
    version[strcspn(version, ",\n")] = '\0';
    char *middle = strstr(version, "Version:");
    const char *number = middle ? middle + strlen("Version:") : "";
    if (middle)
        *middle = '\0';
    number += strspn(number, " \t");
    snprintf(text, size, "%s%s", version[0] ? version : "MPI", number);
}
