# SPDX-License-Identifier: Apache-2.0
# Finds libweft by pkg-config, or where --with-weft-include and --with-weft-lib say. What this Ruby does not have is
# left out, and the recording says so: no check here may fail for the sake of Ruby's version.
require "mkmf"

$warnflags = "" # of Ruby's own build, for another compiler
append_cflags(%w[-std=gnu11 -O2 -g -fvisibility=hidden -Wall -Wextra -Wno-unused-parameter])

pkg_config("weft") unless with_config("weft-include")
dir_config("weft")
abort "weft: libweft is not there: install it (make install), or say where it is: " \
      "--with-weft-include=DIR --with-weft-lib=DIR" unless
  have_header("weft/calls.h") && have_library("weft", "weft_calls", "weft/calls.h")

have_library("m", "log1p", "math.h")
ruby = %w[ruby/ruby.h ruby/thread.h ruby/debug.h]
have_func("rb_internal_thread_add_event_hook", ruby)
have_func("rb_internal_thread_specific_get", ruby)
have_func("rb_postponed_job_preregister", ruby)
have_func("rb_profile_thread_frames", ruby)
have_func("rb_gc_latest_gc_info", ruby)
have_struct_member("struct rb_internal_thread_event_data", "thread", ruby) # typedef'd from 3.3 on
have_struct_member("rb_internal_thread_event_data_t", "thread", ruby)

create_makefile("weft/weft")
