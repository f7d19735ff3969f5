# Compiler flags and paths of all C parts; each Makefile includes this file first.
PREFIX  ?= /usr
# Debian: /usr/lib/x86_64-linux-gnu. Red Hat and SUSE, where gcc prints nothing: /usr/lib64.
MULTIARCH := $(shell gcc -print-multiarch)
LIBDIR  ?= $(if $(MULTIARCH),$(PREFIX)/lib/$(MULTIARCH),$(PREFIX)/$(if $(wildcard /usr/lib64/.),lib64,lib))
CC      ?= gcc
BUILD   := build
LIBS    := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
COMMON  := $(LIBS)/common

VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' $(LIBS)/../sar_agent/__init__.py)

WARNINGS := -std=c11 -D_GNU_SOURCE -DSAR_VERSION='"$(VERSION)"' -Wall -Wextra -Werror
HARDENED := -fstack-protector-strong -D_FORTIFY_SOURCE=2 -fPIC
CFLAGS   ?= -O2 -g
SANITIZE := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
LINKED   := -Wl,-z,relro,-z,now
