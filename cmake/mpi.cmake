# libkoine_mpi.so, the back end of groups over MPI. The library loads it when a group asks for it, so nothing else links
# MPI. Where several are installed, KOINE_MPI=openmpi or KOINE_MPI=mpich chooses: programs, libraries and launchers are
# named after the implementation, as Debian's alternatives are.
set(KOINE_MPI ON CACHE STRING "Build libkoine_mpi.so: ON, if MPI is found; OFF; openmpi or mpich")
if(KOINE_MPI AND NOT KOINE_MPI STREQUAL koine_mpi_chosen)
  # What was found for another choice would stay.
  foreach(variable IN ITEMS MPI_C_COMPILER MPI_C_LIB_NAMES MPI_C_HEADER_DIR MPI_C_WORKS MPIEXEC_EXECUTABLE)
    if(DEFINED koine_mpi_chosen)
      unset(${variable} CACHE)
    endif()
  endforeach()
  if(KOINE_MPI MATCHES "^(openmpi|mpich)$")
    find_program(MPI_C_COMPILER mpicc.${KOINE_MPI} REQUIRED)
    find_program(MPIEXEC_EXECUTABLE mpiexec.${KOINE_MPI} REQUIRED)
  endif()
  set(koine_mpi_chosen ${KOINE_MPI} CACHE INTERNAL "")
endif()
if(KOINE_MPI)
  find_package(MPI COMPONENTS C)
endif()
if(KOINE_MPI AND MPI_C_FOUND)
  file(GLOB koine_mpi_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/dist/mpi/*.c)
  add_library(koine_mpi MODULE ${koine_mpi_sources})
  set_target_properties(koine_mpi PROPERTIES C_VISIBILITY_PRESET hidden)
  target_include_directories(koine_mpi PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include
                                               ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(koine_mpi PRIVATE koine_flags MPI::MPI_C)
  add_dependencies(koine koine_mpi) # whoever builds one program has it, too
  message(STATUS "MPI: ${MPI_C_LIBRARIES}, ${MPIEXEC_EXECUTABLE}")
else()
  message(STATUS "MPI: not found; groups of processes need libopenmpi-dev or libmpich-dev")
endif()
