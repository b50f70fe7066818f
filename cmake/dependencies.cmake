# The library's dependencies. All are in Debian and Ubuntu; tools/packages.txt lists the packages. A missing one is an
# error that names it.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PNG REQUIRED)
find_package(JPEG REQUIRED)
find_package(CLBlast REQUIRED)
pkg_check_modules(OPENCL REQUIRED IMPORTED_TARGET OpenCL)
pkg_check_modules(CJSON REQUIRED IMPORTED_TARGET libcjson)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)

# One interface target, so that the library, the programs and the tests name their dependencies once.
add_library(koine_dependencies INTERFACE)
target_link_libraries(koine_dependencies INTERFACE PkgConfig::OPENCL clblast ZLIB::ZLIB PNG::PNG JPEG::JPEG
                                                   PkgConfig::CJSON PkgConfig::XXHASH
                                                   Threads::Threads ${CMAKE_DL_LIBS} m)
