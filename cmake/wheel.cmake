# koine_wheel_library(FOLDER): puts libkoine.so, the program koine, which compiles kernels for it (docs/startup.md), and
# the libraries that they need into a Python wheel's FOLDER, where each finds the others, whatever the system has. Only
# OpenCL's loader, which knows the system's drivers, and the C and C++ runtimes are the system's.
function(koine_wheel_library folder)
  add_dependencies(koine koine_program)
  set_target_properties(koine koine_program PROPERTIES INSTALL_RPATH "$ORIGIN" BUILD_WITH_INSTALL_RPATH ON)
  foreach(property IN ITEMS VERSION SOVERSION) # libkoine.so: the wheel has just one
    set_property(TARGET koine PROPERTY ${property})
  endforeach()
  install(TARGETS koine koine_program RUNTIME_DEPENDENCY_SET needed
          LIBRARY DESTINATION ${folder} RUNTIME DESTINATION ${folder})
  if(TARGET koine_mpi) # loaded where the system has the MPI that it was made for, of which nothing is in the wheel
    install(TARGETS koine_mpi LIBRARY DESTINATION ${folder})
  endif()
  install(RUNTIME_DEPENDENCY_SET needed
          PRE_EXCLUDE_REGEXES "^lib(OpenCL|c|m|dl|rt|pthread|stdc\\+\\+|gcc_s)\\.so" "^ld-linux"
          POST_EXCLUDE_REGEXES "libkoine\\.so"
          LIBRARY DESTINATION ${folder})
  # A wheel has no links: it would hold each library twice.
  install(CODE "
    file(GLOB links \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${folder}/*.so*\")
    foreach(link IN LISTS links)
      if(IS_SYMLINK \"\${link}\")
        file(REAL_PATH \"\${link}\" library)
        file(RENAME \"\${library}\" \"\${link}\")
      endif()
    endforeach()")
endfunction()
