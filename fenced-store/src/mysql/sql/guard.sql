  SET required = {resource};
  IF @fenced_tx_name IS NULL THEN
    SIGNAL SQLSTATE 'FN010' SET MESSAGE_TEXT = 'unfenced write to a protected table';
  END IF;
  IF required LIKE '% %'
     OR LOCATE(CONCAT(' ', COALESCE(required, ''), ' '), BINARY @fenced_resources) = 0 THEN
    SIGNAL SQLSTATE 'FN011' SET MESSAGE_TEXT = 'write to a protected table under another fence';
  END IF;
  SET presented = (SELECT token FROM {ours}fenced_open_transaction
                   WHERE connection_id = CONNECTION_ID() AND resource = required
                     AND tx_name = @fenced_tx_name);
  IF presented IS NULL THEN
    IF EXISTS (SELECT 1 FROM {ours}fenced_open_transaction
               WHERE connection_id = CONNECTION_ID() AND tx_name = @fenced_tx_name) THEN
      SIGNAL SQLSTATE 'FN011' SET MESSAGE_TEXT = 'write to a protected table under another fence';
    END IF;
    SET @fenced_tx_name = NULL;
    SIGNAL SQLSTATE 'FN010' SET MESSAGE_TEXT = 'unfenced write to a protected table';
  END IF;
  SET high_water = (SELECT token FROM {ours}fenced_high_water_mark WHERE resource = required
                    LOCK IN SHARE MODE);
  IF NOT high_water <=> presented THEN
    SET message = CONCAT('{{"resource":"', required, '","presented":', presented,
                         ',"high_water":', COALESCE(high_water, 0), '}}');
    SIGNAL SQLSTATE 'FN001' SET MESSAGE_TEXT = message;
  END IF;
