# Compiler flags and paths of all C parts; each Makefile includes this file first.
PREFIX  ?= /usr
MULTIARCH := $(shell gcc -print-multiarch)
LIBDIR  ?= $(PREFIX)/lib/$(MULTIARCH)
CC      ?= gcc
BUILD   := build
COMMON  := ../c_common

WARNINGS := -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror
HARDENED := -fstack-protector-strong -D_FORTIFY_SOURCE=2 -fPIC
CFLAGS   ?= -O2 -g
SANITIZE := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
LINKED   := -Wl,-z,relro,-z,now
