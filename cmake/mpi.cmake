# libkoine_mpi.so, the back end of groups over MPI. The library loads it when a group asks for it, so nothing else links
# MPI. Built with the MPI that CMake finds; MPI_C_COMPILER=mpicc.mpich chooses another.
option(KOINE_MPI "Build libkoine_mpi.so, if MPI is found" ON)
if(KOINE_MPI)
  find_package(MPI COMPONENTS C)
endif()
if(KOINE_MPI AND MPI_C_FOUND)
  file(GLOB koine_mpi_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/dist/mpi/*.c)
  add_library(koine_mpi MODULE ${koine_mpi_sources})
  set_target_properties(koine_mpi PROPERTIES C_VISIBILITY_PRESET hidden)
  target_include_directories(koine_mpi PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(koine_mpi PRIVATE koine_flags MPI::MPI_C)
  add_dependencies(koine koine_mpi) # whoever builds one program has it, too
  message(STATUS "MPI: ${MPI_C_LIBRARIES}")
else()
  message(STATUS "MPI: not found; groups of processes need libopenmpi-dev or libmpich-dev")
endif()
