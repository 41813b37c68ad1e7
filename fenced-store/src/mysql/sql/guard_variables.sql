  DECLARE required VARCHAR(256) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE presented, high_water BIGINT;
  DECLARE message VARCHAR(512);
